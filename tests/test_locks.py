import subprocess
import sys

import pytest

from respo.locks import clear_stale_locks

HOLD = """
import sys
from pathlib import Path
from respo.locks import clear_stale_locks
guard = clear_stale_locks(Path(sys.argv[1]))
print(guard is not None, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "0.input.lock").write_text("results/a\n")
    return tmp_path


def test_locks_of_the_dead_are_removed(folder):
    guard = clear_stale_locks(folder)
    assert guard is not None
    assert not list((folder / "locks").iterdir())
    guard.close()


def test_locks_of_the_living_stay(folder):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"True\n"
        (folder / "locks" / "1.output.lock").write_text("results/b\n")
        assert clear_stale_locks(folder) is None
        assert [path.name for path in (folder / "locks").iterdir()] == ["1.output.lock"]
        other.kill()
    guard = clear_stale_locks(folder)
    assert guard is not None
    assert not list((folder / "locks").iterdir())
    guard.close()


def test_a_folder_that_cannot_be_made_is_left_to_snakemake(tmp_path):
    (tmp_path / "file").write_text("")
    assert clear_stale_locks(tmp_path / "file" / ".snakemake") is None
