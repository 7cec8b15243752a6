#!/bin/sh
# Installs the pinned packages and the project into the environment of local.yaml.
# Snakemake makes the environment anew when this file changes, so it names the hash of the pins:
# sha256 of envs/lock.txt: d3e8578df05f0d4eb287f1100843b157789f4dfb362c15106f63ecdea39bf85c
set -eu
[ -f envs/lock.txt ] || {
    echo "start snakemake in the project's folder: envs/lock.txt is not here" >&2
    exit 1
}
python -m pip install --quiet -c envs/lock.txt -e .
