#!/bin/sh
# Installs the packages and the project into the environment of local.yaml. Snakemake makes the
# environment anew when this file changes, so it names what it installs (`./run lock` does that).
# sha256 of envs/install.sh: 3a116d7f092a31646c6f32a6422a8913a29c09266842f7d29dbcf6feda310bd1
# sha256 of envs/local.lock: 8d9162d419d51659bf5c6779efe09b2e597b525a2dd211cf265d414c6cc4ac85
exec sh envs/install.sh local
