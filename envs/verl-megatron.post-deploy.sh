#!/bin/sh
# Installs the packages and the project into the environment of verl-megatron.yaml. Snakemake makes the
# environment anew when this file changes, so it names what it installs (`./run lock` does that).
# sha256 of envs/install.sh: 3a116d7f092a31646c6f32a6422a8913a29c09266842f7d29dbcf6feda310bd1
# sha256 of envs/verl-megatron.lock: d97d7dd45a31815b954d7539dd4466cd460cddf8c047f63455f25cac52a30d7e
# sha256 of envs/verl-megatron.sources.lock: 115185622e96ca8136818f7ebf7b5c2cad575bce3d8d6bb1cdba4c853e36e0ed
exec sh envs/install.sh verl-megatron
