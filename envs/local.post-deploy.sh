#!/bin/sh
# Installs the pinned packages and the project into the environment of local.yaml.
# Snakemake makes the environment anew when this file changes, so it names the hash of the pins:
# sha256 of envs/lock.txt: 0aaf17828f08cd37de2b89875a59ab7959ce787a16b60cf263c9e5c71018fe93
set -eu
[ -f envs/lock.txt ] || {
    echo "start snakemake in the project's folder: envs/lock.txt is not here" >&2
    exit 1
}
python -m pip install --quiet -c envs/lock.txt -e .
