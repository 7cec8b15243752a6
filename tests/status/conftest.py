"""The tiny study with nothing done yet, and what writes into its results folder by hand."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from respo.config import ResolvedStudy, Run, load_study
from respo.objectives import code_hash

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture(scope="session")
def study() -> ResolvedStudy:
    return load_study(CONFIG, "tiny")


@pytest.fixture(scope="session")
def config_texts(study: ResolvedStudy) -> dict[str, str]:
    texts = study.config_texts(Path(), code_hash)
    return {name: text() for name, text in texts.items()}


@pytest.fixture
def folder(config_texts: dict[str, str], tmp_path: Path) -> Path:
    """`results/tiny` as it is when snakemake has written the configurations."""
    folder = tmp_path / "results" / "tiny"
    for name, text in config_texts.items():
        write(folder / name, text)
    return folder


@pytest.fixture
def trained(folder: Path) -> Callable[[Run], None]:
    """Write the results of a run."""

    def trained(run: Run) -> None:
        place = run.folder(folder)
        config = hashlib.sha256((place / "config.yaml").read_bytes()).hexdigest()
        write(place / "train.json", json.dumps({"config_sha256": config}))
        write(place / "metrics.parquet", "")
        write(place / "branches.parquet", "")

    return trained


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
