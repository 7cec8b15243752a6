#!/bin/sh
# Installs the pinned packages and the project into the environment of local.yaml.
# Snakemake makes the environment anew when this file changes, so it names the hash of the pins:
# sha256 of envs/lock.txt: a60e7a10b7b9ef457ee12c1731bb4255569777e68a01ee334f0914411f59fd93
set -eu
[ -f envs/lock.txt ] || {
    echo "start snakemake in the project's folder: envs/lock.txt is not here" >&2
    exit 1
}
python -m pip install --quiet -c envs/lock.txt -e .
