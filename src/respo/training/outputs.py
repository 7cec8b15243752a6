"""The tables of a run, whose hashes `train.json` holds under ``outputs``."""

from pathlib import Path
from typing import Any

from respo.files import sha256_of

TABLES = ("metrics.parquet", "branches.parquet")


def table_hashes(run: Path) -> dict[str, str]:
    """Return the SHA-256 of each table of a run.

    Raises:
        UserError: one is missing.
    """
    return {name: sha256_of(run / name) for name in TABLES}


def tables_are_whole(run: Path, train: dict[str, Any]) -> bool:
    """Tell whether the tables are those that were written with `train.json`.

    Version 0.1.0 wrote no hashes: there any will do.

    Raises:
        UserError: one is missing.
    """
    return train.get("outputs") in (None, table_hashes(run))
