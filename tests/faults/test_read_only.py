"""Results that cannot be written: they can be read, and a start says so in one line."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.faults


@pytest.fixture
def read_only(finished, mounts):
    """A function that runs a command in a checkout of which a folder cannot be written."""

    def run(folder, *command):
        # cd: what is mounted over the working folder is seen from the next one that enters it.
        script = 'mount --bind -o ro "$0" "$0" && cd "$PWD" && exec "$@"'
        return subprocess.run(
            [*mounts, "sh", "-c", script, folder, sys.executable, "-m", *command],
            cwd=finished,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return run


def test_read_only_results_are_read(read_only):
    for command in (
        ["snakemake", "--dry-run", "--config", "study=mini"],
        ["respo.status", "--study", "mini"],
        ["respo.explain", "results/mini/tables/respo/table1.md"],
        ["respo.check", "results/mini"],
    ):
        result = read_only("results", *command)
        assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("results", "error: results/mini: Read-only file system. Change the permissions or "),
        (".", "error: .snakemake/alive: Read-only file system. Change the permissions or "),
    ],
)
def test_a_start_says_in_one_line_that_it_cannot_write(read_only, folder, message):
    result = read_only(folder, "snakemake", "--config", "study=mini")
    assert result.returncode == 1
    assert message in result.stdout
    assert "Traceback" not in result.stdout


def test_a_stage_says_in_one_line_that_it_cannot_write(read_only):
    command = ["respo.reporting.table", "respo/table1", "--study", "results/mini"]
    result = read_only("results", *command)
    assert result.returncode == 1
    assert result.stdout.startswith("error: results/mini/tables/respo/table1.")
    assert "Read-only file system. Change the permissions" in result.stdout
