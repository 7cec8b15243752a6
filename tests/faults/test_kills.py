import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults
DRILL = Path(__file__).with_name("drill.py")


def test_a_study_that_is_killed_twenty_times_has_the_same_results(empty, unbroken, tmp_path):
    checkout = tmp_path / "killed"
    shutil.copytree(empty, checkout)
    results = unbroken / "results" / "mini"
    options = ["--study", "mini", "--unbroken", results, "--kills", "20", "--seed", "1"]
    result = subprocess.run(
        [sys.executable, DRILL, checkout, *options], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1].startswith("20 kills, ")
    assert "the same results" in result.stdout
