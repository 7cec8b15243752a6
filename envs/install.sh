#!/bin/sh
# install.sh ENV: the packages of envs/ENV.lock, what has to be built, and the project itself, into
# the Python that comes first in PATH.
set -eu
env=$1
lock=envs/$env.lock
sources=envs/$env.sources.lock
[ -f "$lock" ] || {
    echo "error: $lock is not here; start in the project's folder" >&2
    exit 1
}
# Nothing of the user's own packages counts as installed.
export PYTHONNOUSERSITE=1

install() {
    python -m pip install --quiet --no-deps "$@"
}

install --require-hashes -r "$lock"
if [ -f "$sources" ]; then
    if [ -n "${RESPO_WHEELS:-}" ]; then
        # Wheels that somebody built have hashes of their own: the versions are held, not the hashes.
        # shellcheck disable=SC2046
        install --no-index --find-links "$RESPO_WHEELS" $(sed -n 's/ .*//; /==/p' "$sources")
    elif command -v "${CUDA_HOME:+$CUDA_HOME/bin/}nvcc" >/dev/null; then
        echo "Building what has no wheels on the index ($sources); this can take an hour" >&2
        install --require-hashes --no-build-isolation -r "$sources"
    else
        cat >&2 <<END
error: $env needs packages that have no wheels on the index and no CUDA compiler (nvcc) is here:
$(sed -n 's/==\([^ ]*\).*/ \1/p' "$sources")
Set CUDA_HOME to a CUDA 13.0 toolkit, or RESPO_WHEELS to a folder with wheels of them that were built
for this Python and torch; envs/README.md says how to build them once.
END
        exit 1
    fi
fi
install --no-build-isolation -e .
