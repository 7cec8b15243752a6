import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from respo.rewards.code import layout
from respo.rewards.code.layout import SPARE, host_python, numpy_folders, system_layout


def test_the_interpreter_is_not_of_the_virtual_environment() -> None:
    python = Path(host_python())
    assert python.is_relative_to(os.path.realpath(sys.base_prefix))
    assert not python.is_symlink()


@pytest.mark.parametrize("user", [0, 1000], ids=["root", "user"])
def test_an_interpreter_that_others_cannot_reach(
    user: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It moves if root starts programs, for they are not root's."""
    prefix = tmp_path.resolve() / "home" / "python"
    for name in ("bin", "lib", "share", "envs"):
        (prefix / name).mkdir(parents=True)
    prefix.parent.chmod(0o700)
    monkeypatch.setattr(sys, "base_prefix", str(prefix))
    monkeypatch.setattr(sys, "_base_executable", str(prefix / "bin/python3"))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    found = system_layout()
    place = Path(SPARE) if user == 0 else prefix
    assert found.python == str(place / "bin/python3")
    assert found.hidden == (str(prefix) if user == 0 else None)
    assert found.binds[-2:] == [str(place / "bin"), str(place / "lib")]


def test_an_interpreter_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes with /usr."""
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setattr(sys, "_base_executable", "/usr/bin/env")
    found = system_layout()
    assert (found.python, found.hidden) == (os.path.realpath("/usr/bin/env"), None)
    assert set(found.binds) <= {"/usr", *(f"/{n}" for n in layout._SYSTEM), layout._LIBRARIES}
    assert found.binds.count("/usr") == 1


def test_numpy_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless root has it where nobody else gets to."""
    package = tmp_path.resolve() / "home" / "numpy"
    package.mkdir(parents=True)
    spec = ModuleSpec("numpy", None, origin=str(package / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert numpy_folders() == [package]
    package.with_name("numpy.libs").mkdir()
    assert numpy_folders() == [package, package.with_name("numpy.libs")]
    assert system_layout().packages[0] == (str(package), "/packages/numpy")
    (package / "__init__.py").symlink_to("elsewhere")
    assert numpy_folders() == []
    (package / "__init__.py").unlink()
    package.parent.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert numpy_folders() == []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert numpy_folders() == []
