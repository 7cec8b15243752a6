import json
import os
import shutil
import socket
import subprocess

import numpy
import pytest

from respo import environment


def test_the_environment_tells_the_machine_and_no_name_of_it():
    told = environment.environment("numpy")
    assert told["processor"].endswith(f", {os.cpu_count()} threads")
    assert told["numpy"] == numpy.__version__
    assert socket.gethostname() not in json.dumps(told)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package as `pip install` would copy it, below a folder."""
    copy = tmp_path / "site-packages" / "respo" / "environment.py"
    copy.parent.mkdir(parents=True)
    shutil.copy(environment.__file__, copy)
    monkeypatch.setattr(environment, "__file__", str(copy))
    return tmp_path


@pytest.mark.parametrize("within", ["a checkout of something else", "no checkout"])
def test_an_installed_package_is_of_no_revision(installed, within):
    if within != "no checkout":
        subprocess.run(["git", "init", "--quiet", installed], check=True)
    assert environment.code_revision.__wrapped__() == "not from a git checkout"


def test_a_revision_that_git_does_not_tell(installed, monkeypatch):
    (installed / ".git").mkdir()  # nothing that git would accept
    assert environment.code_revision.__wrapped__() == "unknown"
    monkeypatch.setenv("PATH", "")
    assert environment.code_revision.__wrapped__() == "unknown"


def test_a_revision_tells_code_that_is_not_committed(installed, monkeypatch):
    monkeypatch.setattr(environment, "CODE", (":/site-packages",))

    def git(*arguments):
        words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", installed, *arguments]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    code = installed / "site-packages" / "respo" / "environment.py"
    git("init", "--quiet")
    git("add", code)
    git("commit", "--quiet", "--message", "one")
    revision = environment.code_revision.__wrapped__()
    assert revision == git("rev-parse", "HEAD")
    code.write_text(code.read_text() + "# more")
    assert environment.code_revision.__wrapped__() == f"{revision}-dirty"
