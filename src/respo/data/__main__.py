"""`python -m respo.data --config FILE --side train|held_out --out FILE`: make prompts."""

import argparse
from pathlib import Path

import pyarrow as pa

from respo.cli import UserError, command
from respo.config import load_data_config
from respo.config.schema import Chain
from respo.data import chain
from respo.files import sha256_of, write_parquet


def rows(config: Chain, *, held_out: bool) -> pa.Table:
    """Make the rows of a data set: `id`, `prompt`, `answer`.

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


@command
def main() -> None:
    """Parse the command line and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="resolved data configuration")
    parser.add_argument("--out", type=Path, required=True, help="Parquet file to write")
    parser.add_argument("--side", choices=["train", "held_out"], required=True, help="of the split")
    options = parser.parse_args()
    config = load_data_config(options.config)
    try:
        table = rows(config, held_out=options.side == "held_out")
    except ValueError as error:
        raise UserError(f"{options.config}: {error}") from None
    # No versions: the same rows make the same file, whose hash says what a run was trained on.
    write_parquet(options.out, table, {"config_sha256": sha256_of(options.config)})
    print(f"{options.out}: {table.num_rows} rows")


if __name__ == "__main__":
    main()
