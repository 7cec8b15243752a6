#!/bin/sh
# Installs the packages and the project into the environment of local.yaml. Snakemake makes the
# environment anew when this file changes, so it names what it installs (`./run lock` does that).
# sha256 of envs/install.sh: 3a116d7f092a31646c6f32a6422a8913a29c09266842f7d29dbcf6feda310bd1
# sha256 of envs/local.lock: 4a648148b80d1fee47e5b7898e33af1bc19ed8edee692693a87d4ad857903157
exec sh envs/install.sh local
