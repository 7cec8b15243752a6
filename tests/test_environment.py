"""The pins stand in one place, and what depends on them is in step."""

import hashlib
import importlib.metadata
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "envs" / "lock.txt"


def pins():
    return dict(line.split("==") for line in LOCK.read_text().split())


def test_every_dependency_is_pinned_and_installed_as_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    extras = project["optional-dependencies"]["peers"]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in [*names, *extras]), (
        "versions are in the lock"
    )
    pinned = {name.lower(): version for name, version in pins().items()}
    # verl is installed by `./run peers`, without its dependencies.
    assert {name.lower() for name in [*extras, "verl"]} <= set(pinned)
    for name in names:
        # A build may add a local part, such as 2.13.0+cpu.
        installed = importlib.metadata.version(name).partition("+")[0]
        assert installed == pinned[name.lower()], name


def test_the_conda_environment_is_made_anew_with_the_pins():
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    assert digest in (ROOT / "envs" / "local.post-deploy.sh").read_text()
