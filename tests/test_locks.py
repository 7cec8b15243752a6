import subprocess
import sys

import pytest

from respo.locks import clear_stale_locks

HOLD = """
import sys
from pathlib import Path
from respo.locks import clear_stale_locks
guard = clear_stale_locks(Path(sys.argv[1]))
print(guard.alone, flush=True)
sys.stdin.read()
"""


def start(folder):
    """Start a process that holds a guard until its input ends; return it and what it found."""
    command = [sys.executable, "-c", HOLD, folder]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def locks(folder):
    return [path.name for path in (folder / "locks").iterdir()]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "0.input.lock").write_text("results/a\n")
    return tmp_path


def test_locks_of_the_dead_are_removed(folder):
    guard = clear_stale_locks(folder)
    assert guard.alone
    assert locks(folder) == []
    guard.file.close()


def test_locks_of_the_living_stay(folder):
    first, first_alone = start(folder)
    (folder / "locks" / "1.output.lock").write_text("results/b\n")
    # A short-lived second one shares the guard; its end does not open the way for a third.
    second, second_alone = start(folder)
    second.communicate()
    third, third_alone = start(folder)
    assert (first_alone, second_alone, third_alone) == ("True", "False", "False")
    assert locks(folder) == ["1.output.lock"]
    # Killed processes hold nothing.
    for process in (first, third):
        process.kill()
        process.communicate()
    guard = clear_stale_locks(folder)
    assert guard.alone
    assert locks(folder) == []
    guard.file.close()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        clear_stale_locks(tmp_path / "file" / ".snakemake")
