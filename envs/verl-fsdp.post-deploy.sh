#!/bin/sh
# Installs the packages and the project into the environment of verl-fsdp.yaml. Snakemake makes the
# environment anew when this file changes, so it names what it installs (`./run lock` does that).
# sha256 of envs/install.sh: 3a116d7f092a31646c6f32a6422a8913a29c09266842f7d29dbcf6feda310bd1
# sha256 of envs/verl-fsdp.lock: f50e385a209357a08a2b53285e9fa5891f9c9a8b7635d4949db9581cc7044483
# sha256 of envs/verl-fsdp.sources.lock: 630e368b239c07e6d53e9c8903fbdd2ae6b83efc8e60d6f868b2dae6e05c9b7e
exec sh envs/install.sh verl-fsdp
