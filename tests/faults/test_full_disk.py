"""A full disk: one message that names the file, nothing half-written; the next start goes on."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults
SCRIPT = Path(__file__).with_name("full_disk.sh")
RUN = "mini/grpo/N2/seed1"
CELL = f"{RUN}/eval/2/easy"
MESSAGE = "the disk is full. Free some space and start again; nothing is lost."
# What a stage makes, and kilobytes that are free.
CASES = [
    ("data", ["data/held_out/easy.parquet"], 0),
    ("warm_start", ["initial/mini/weights", "initial/mini/initial.json", "initial/mini/.lock"], 0),
    ("warm_start", ["initial/mini/weights", "initial/mini/initial.json"], 8),
    ("train", [f"{RUN}/checkpoints", f"{RUN}/train.json"], 8),
    ("train", [f"{RUN}/train.json", f"{RUN}/metrics.parquet", f"{RUN}/checkpoints"], 100),
    ("generate", [f"{CELL}/generations.parquet", f"{CELL}/.shards"], 0),
    ("score", [f"{CELL}/scores.parquet"], 0),
    ("cell", [f"{CELL}/cell.json"], 0),
    ("table", ["tables"], 8),
    ("figure", ["figures"], 8),
    ("page", ["explore.html"], 8),
]


@pytest.mark.parametrize(("stage", "made", "free"), CASES)
def test_a_full_disk_is_one_message(study_copy, stages, mounts, stage, made, free):
    for name in made:
        path = study_copy / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    command = [sys.executable, "-m", *(f"respo.{stages[stage][0]}", *stages[stage][1:])]
    result = subprocess.run(
        [*mounts, "sh", SCRIPT, study_copy, str(free), *command], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Traceback" not in result.stdout
    assert re.search(rf"^error: \S+: {re.escape(MESSAGE)}$", result.stdout, re.MULTILINE)
    assert "\nexit code 1\n" in result.stdout
    assert not re.search(r"^left .*(part|tmp)", result.stdout, re.MULTILINE), result.stdout
    for name in made:
        assert Path(f"{study_copy}.after", name).exists()


def test_a_disk_that_is_too_small_for_a_study(empty, unbroken, mounts, differences, tmp_path):
    """Snakemake and all its jobs, on a disk that grows until it is large enough."""
    checkout = tmp_path / "checkout"
    shutil.copytree(empty, checkout)
    result = subprocess.run(
        [*mounts, "sh", SCRIPT.with_name("growing_disk.sh"), checkout, sys.executable],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    starts = result.stdout.split("== ")[1:]
    assert len(starts) > 2
    for said in starts[:-1]:
        assert "isk is full" in said or "No space left on device" in said
        assert "Traceback" not in said
    assert differences(unbroken, checkout) == ""
