"""`snakemake --sdm conda` with a stand-in for conda: the environments are made, filled and used."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What snakemake asks of conda. An environment is a Python that notes its calls and where it is.
CONDA = r"""#!/bin/sh
case $* in
--version) echo "conda 25.1.0" ;;
"info --json") echo '{"conda_prefix": "'"$BASE"'", "platform": "linux-64"}' ;;
"config --get channel_priority --json") echo '{"get": {"channel_priority": "strict"}}' ;;
"clean "*) ;;
"env create "*)
    while [ "$1" != --prefix ]; do shift; done
    mkdir -p "$2/bin"
    printf '#!/bin/sh\necho "$*" >>"$CALLS"\necho "$0"\n' >"$2/bin/python"
    chmod +x "$2/bin/python"
    ;;
*) exit 1 ;;
esac
"""
ACTIVATE = 'export CONDA_PREFIX=$1 PATH="$1/bin:$PATH"\n'
SNAKEFILE = """
rule train:
    output: "where"
    conda: "envs/vllm.yaml"
    shell: "workflow/in-env vllm python -m respo > {output}"
"""


@pytest.fixture
def project(tmp_path):
    """A project with one rule, which has a virtual environment as well; snakemake in it."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "envs", folder / "envs")
    (folder / "workflow").mkdir()
    shutil.copy(ROOT / "workflow" / "in-env", folder / "workflow")
    (folder / ".venv-vllm" / "bin").mkdir(parents=True)
    (folder / "Snakefile").write_text(SNAKEFILE)
    base = tmp_path / "conda"
    (base / "bin").mkdir(parents=True)
    (base / "bin" / "conda").write_text(CONDA)
    (base / "bin" / "conda").chmod(0o755)
    (base / "bin" / "activate").write_text(ACTIVATE)

    def run(*options):
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "--sdm", "conda", "--cores", "1", *options],
            cwd=folder,
            env={
                **os.environ,
                "PATH": f"{base / 'bin'}:{os.environ['PATH']}",
                "BASE": str(base),
                "CALLS": str(tmp_path / "calls"),
                "HOME": str(tmp_path),
            },
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    run.folder = folder
    run.calls = tmp_path / "calls"
    return run


@pytest.mark.integration
def test_conda_environments_are_filled_from_the_lock_and_used_by_jobs(project):
    project()
    pip = "-m pip install --quiet --no-deps"
    assert project.calls.read_text().splitlines() == [
        f"{pip} --require-hashes -r envs/vllm.lock",
        f"{pip} --no-build-isolation -e .",
        "-m respo",
    ]
    python = Path((project.folder / "where").read_text().strip())
    assert python.is_relative_to(project.folder / ".snakemake" / "conda")
    # Only the hash of the lock changes: another environment.
    script = project.folder / "envs" / "vllm.post-deploy.sh"
    script.write_text(script.read_text().replace("vllm.lock: ", "vllm.lock: 0"))
    assert "Conda environment envs/vllm.yaml will be created" in project("--dry-run", "--forceall")
