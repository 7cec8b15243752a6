import shutil
from pathlib import Path

import pytest

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A copy of the project's configuration, to change or spoil."""
    return Path(shutil.copytree(CONFIG, tmp_path / "config"))
