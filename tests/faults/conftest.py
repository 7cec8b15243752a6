"""Faults of a whole study. Those marked `faults` take minutes: they run where they are asked for.

./run test -m faults
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUN = "mini/grpo/N2/seed1"
CELL = f"{RUN}/eval/2/easy"
SAMPLING = "--samples 2 --temperature 1 --top-p 0.7 --max-response-tokens 24 --seed 0"
ADDRESS = "--study mini --model mini --method grpo --staleness 2 --seed 1 --update 2"
# The commands of one cell of the study of `study_copy`, run in its folder.
STAGES = {
    "data": "data.__main__ --config data/held_out/easy.yaml --side held_out"
    " --out data/held_out/easy.parquet",
    "warm_start": "training.local.warm_start --config initial/mini/config.yaml"
    " --data data/train/chain.parquet --out initial/mini",
    "train": f"training.local.__main__ --config {RUN}/config.yaml"
    " --initial initial/mini/weights --data data/train/chain.parquet",
    "generate": f"evaluation.generate --checkpoint {RUN}/checkpoints/2 --train {RUN}/train.json"
    f" --benchmark data/held_out/easy.parquet {SAMPLING} --out {CELL}/generations.parquet",
    "score": f"evaluation.score --generations {CELL}/generations.parquet"
    f" --verifier strict_box --out {CELL}/scores.parquet",
    "cell": f"evaluation.cell --scores {CELL}/scores.parquet --train {RUN}/train.json"
    f" --run-config {RUN}/config.yaml {ADDRESS} --benchmark easy --out {CELL}/cell.json",
    "table": "reporting.table respo/table1 --study .",
    "figure": "reporting.figure respo/fig3 --study .",
    "page": "reporting.page.__main__ --study .",
}


def pytest_collection_modifyitems(config, items):
    if "faults" in config.option.markexpr:
        return
    for item in items:
        if item.get_closest_marker("faults"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: ./run test -m faults"))


@pytest.fixture
def stages():
    """Module of `respo` and arguments, by stage."""
    return {name: command.split() for name, command in STAGES.items()}


@pytest.fixture(scope="session")
def empty(mini, tmp_path_factory):
    """A checkout with the study `mini`, without results."""
    folder = tmp_path_factory.mktemp("faults") / "empty"
    subprocess.run([sys.executable, mini.__file__, folder], check=True)
    return folder


@pytest.fixture(scope="session")
def unbroken(empty):
    """The same, run to its end without a fault."""
    folder = empty.with_name("unbroken")
    shutil.copytree(empty, folder)
    result = run_snakemake(folder)
    assert result.returncode == 0, result.stdout
    return folder


@pytest.fixture
def finished(unbroken, tmp_path):
    """A copy of it with everything as it was, times too."""
    folder = tmp_path / "finished"
    shutil.copytree(unbroken, folder)  # with times
    return folder


def run_snakemake(folder, *arguments, prefix=()):
    """Run the study; errors are among the output."""
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--config", "study=mini"]
    return subprocess.run(
        [*prefix, *command, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.fixture
def snakemake():
    return run_snakemake


@pytest.fixture
def would_run():
    """A function of a checkout: the rules that a start would run, with the number of jobs."""

    def rules(folder, *arguments):
        result = run_snakemake(folder, "--dry-run", "--quiet", "rules", *arguments)
        assert result.returncode == 0, result.stdout
        lines = [line.split() for line in result.stdout.splitlines()]
        return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}

    return rules


@pytest.fixture
def products():
    """What may be made anew after a copy, in seconds."""
    tables, figures = ("table1", "table6"), ("fig1", "fig3")
    drawn = {f"table_respo_{name}" for name in tables} | {
        f"figure_respo_{name}" for name in figures
    }
    return drawn | {"explore", "report", "all", "total"}


@pytest.fixture
def differences():
    """A function of two checkouts: what differs in their results, line by line."""

    def compare(one, other):
        paths = [folder / "results" / "mini" for folder in (one, other)]
        result = subprocess.run(
            [sys.executable, HERE / "same_results.py", *paths], capture_output=True, text=True
        )
        return result.stdout + result.stderr

    return compare


@pytest.fixture
def mounts():
    """Skip where no file system can be mounted; return how to start a command that may."""
    prefix = ["unshare", "--mount"]
    try:
        subprocess.run([*prefix, "mount", "-t", "tmpfs", "none", "/mnt"], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root can mount a small or read-only disk")
    return prefix
