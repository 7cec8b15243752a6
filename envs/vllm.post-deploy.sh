#!/bin/sh
# Installs the packages and the project into the environment of vllm.yaml. Snakemake makes the
# environment anew when this file changes, so it names what it installs (`./run lock` does that).
# sha256 of envs/install.sh: 3a116d7f092a31646c6f32a6422a8913a29c09266842f7d29dbcf6feda310bd1
# sha256 of envs/vllm.lock: 63a079ca599c81162213d788624e785ed5ca2bd4c1801765f3dacd2b3fea502e
exec sh envs/install.sh vllm
