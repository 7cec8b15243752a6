"""Two starts in one checkout: the second of a study is refused, and nothing is lost."""

import shutil
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.faults


def test_the_second_snakemake_is_refused(empty, unbroken, snakemake, differences, tmp_path):
    checkout = tmp_path / "checkout"
    shutil.copytree(empty, checkout)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--config", "study=mini"]
    with (checkout / "first.log").open("w") as log:
        first = subprocess.Popen(command, cwd=checkout, stdout=log, stderr=subprocess.STDOUT)
    while first.poll() is None and "Job " not in (checkout / "first.log").read_text():
        time.sleep(0.1)
    second = snakemake(checkout)
    assert first.poll() is None
    assert second.returncode == 1
    assert "Directory cannot be locked" in second.stdout
    assert "Traceback" not in second.stdout
    assert first.wait() == 0, (checkout / "first.log").read_text()
    assert differences(unbroken, checkout) == ""
    assert snakemake(checkout).returncode == 0
