"""`python -m respo.data --config FILE --side train|held_out --out FILE`: make prompts."""

import argparse
from pathlib import Path
from typing import Any

import pyarrow as pa

from respo.cli import UserError, command
from respo.config import load_data_config
from respo.config.schema import Chain, Choices, Files, Programs, Rows, Union
from respo.data import chain
from respo.data.choices import read_choices
from respo.data.hub import fetch
from respo.data.programs import ProgramReading
from respo.data.rows import read_rows, read_union
from respo.files import sha256_of
from respo.parquet import write_parquet, write_parquet_rows

PROGRAM_ROWS = pa.schema([(key, pa.string()) for key in ("id", "prompt", "answer", "tests")])


def generated(config: Chain, *, held_out: bool) -> pa.Table:
    """Make the rows of the generator: `id`, `prompt`, `answer`.

    Raises:
        ValueError: the task has fewer distinct prompts than asked for.
    """
    least, greatest = config.operators
    prompts = chain.distinct_prompts(least, greatest, config.rows, config.seed, held_out=held_out)
    return pa.table(
        {
            "id": [f"{config.source}-{index:05d}" for index in range(len(prompts))],
            "prompt": prompts,
            "answer": [chain.answer(prompt) for prompt in prompts],
        }
    )


def published(config: Rows | Choices | Union) -> tuple[pa.Table, dict[str, Any]]:
    """Read the rows of files: `id`, `prompt`, `answer`, and what they were made from.

    Raises:
        UserError: a file or row cannot be used.
    """
    parts = config.parts if isinstance(config, Union) else [config]
    found = [_files(part) for part in parts]
    if isinstance(config, Union):
        reading = read_union(config, [paths for paths, _ in found])
    elif isinstance(config, Rows):
        reading = read_rows(config, found[0][0])
    else:
        reading = read_choices(config, found[0][0])
    print("\n".join(reading.summary()))
    origins = [origin for _, origin in found]
    return reading.table(), {
        **({"parts": origins} if isinstance(config, Union) else origins[0]),
        "rows": reading.read,
        "copies": reading.copies,
        "unanswered": reading.unanswered,
        "disagreeing": [row.id for row in reading.disagreeing],
    }


def write_programs(config: Programs, path: Path, made_from: dict[str, Any]) -> int:
    """Write problems to be programmed, one after the other; return how many.

    Raises:
        UserError: a file or problem cannot be used.
    """
    files, origin = _files(config)
    reading = ProgramReading(config, files)

    def provenance() -> dict[str, Any]:
        counts = {"rows": reading.read, "window": reading.inside, "unanswered": reading.unanswered}
        return {**made_from, "files": {**origin, **counts}}

    count = write_parquet_rows(path, PROGRAM_ROWS, reading, provenance)
    print("\n".join(reading.summary()))
    return count


def _files(config: Files) -> tuple[list[Path], dict[str, Any]]:
    """Return the files of a set of rows, downloaded if need be, and their commit and checksums."""
    commit = None
    if config.hub and config.revision and config.files:
        paths, commit = fetch(config.hub, config.revision, config.files)
    else:
        paths = config.local_files
    names = config.files or [config.path or ""]
    sha256 = {name: sha256_of(path) for name, path in zip(names, paths, strict=True)}
    return paths, {"commit": commit, "sha256": sha256}


@command
def main() -> None:
    """Parse the command line and write the rows."""
    parser = argparse.ArgumentParser(prog="python -m respo.data", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="resolved data configuration")
    parser.add_argument("--out", type=Path, required=True, help="Parquet file to write")
    parser.add_argument(
        "--side",
        choices=["train", "held_out"],
        required=True,
        help="of the split of generated prompts; rows of files are as the files have them",
    )
    options = parser.parse_args()
    config, version = load_data_config(options.config)
    # No versions of packages: the same rows make the same file, whose hash says what a run was
    # trained on.
    made_from: dict[str, Any] = {"config_sha256": sha256_of(options.config)}
    if version is not None:
        made_from["version"] = version
    if isinstance(config, Programs):
        count = write_programs(config, options.out, made_from)
        print(f"{options.out}: {count} rows")
        return
    if isinstance(config, Chain):
        try:
            table = generated(config, held_out=options.side == "held_out")
        except ValueError as error:
            raise UserError(f"{options.config}: {error}") from None
    else:
        table, files = published(config)
        made_from["files"] = files
    write_parquet(options.out, table, made_from)
    print(f"{options.out}: {table.num_rows} rows")


if __name__ == "__main__":
    main()
