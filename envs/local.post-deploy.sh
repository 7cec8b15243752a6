#!/bin/sh
# Installs the pinned packages and the project into the environment of local.yaml.
# Snakemake makes the environment anew when this file changes, so it names the hash of the pins:
# sha256 of envs/lock.txt: 4957cc0ef5c8615b85ea5a36f451d166316af6e26a6c727fade7b4043614c11d
set -eu
[ -f envs/lock.txt ] || {
    echo "start snakemake in the project's folder: envs/lock.txt is not here" >&2
    exit 1
}
python -m pip install --quiet -c envs/lock.txt -e .
