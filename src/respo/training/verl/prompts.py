"""`python -m respo.training.verl.prompts`: the prompts of a run as verl reads them, in order.

One row for each prompt of each rollout batch, in the order in which local training takes them: the
data set over and over, each time in an order of its own. verl reads the rows one after the other,
so that no batch is cut short at the end of an epoch and a run that is resumed goes on where it was.
"""

import argparse
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from respo.cli import UserError, command
from respo.config import load_run_config
from respo.config.schema import RunConfig, VerlPolicy
from respo.files import sha256_of
from respo.parquet import write_parquet
from respo.policy.chat import Chat, load_chat
from respo.training.local.prompts import read_rows, shuffled_epochs
from respo.training.verl.options import Paths

SCHEMA = pa.schema(
    {
        "data_source": pa.string(),
        "prompt": pa.list_(pa.struct({"role": pa.string(), "content": pa.string()})),
        # Large: the tests of problems to be programmed can have more than 2 GB together.
        "reward_model": pa.struct({"ground_truth": pa.large_string()}),
        "extra_info": pa.struct({"index": pa.int64(), "id": pa.string()}),
    }
)


def verl_prompts(
    run: RunConfig, rows: list[dict[str, str]], tokenizer: Any
) -> tuple[pa.Table, int]:
    """Return the rows of a run in verl's form, and how many of the set were too long.

    Args:
        run: its seed, number of updates, mini-batch and prompt limit decide.
        rows: the training set: `id`, `prompt`, `answer`.
        tokenizer: the model's, of transformers; has a chat template.

    Raises:
        UserError: no prompt is short enough.
    """
    model = run.model
    assert isinstance(model, VerlPolicy)
    chat = Chat(tokenizer, model.thinking)
    usable = [
        {
            "data_source": "respo",
            "prompt": chat.messages(row["prompt"]),
            "reward_model": {"ground_truth": row["answer"]},
            "extra_info": {"index": index, "id": row["id"]},
        }
        for index, row in enumerate(rows)
        if len(chat.encode(row["prompt"])) <= model.max_prompt_tokens
    ]
    if not usable:
        raise UserError(
            f"none of {len(rows)} prompts has at most {model.max_prompt_tokens} tokens; raise "
            f"max_prompt_tokens of the model or add data"
        )
    count = run.training.updates * run.training.mini_batch
    order = islice(shuffled_epochs(len(usable), run.seed), count)
    table = pa.Table.from_pylist([usable[index] for index in order], schema=SCHEMA)
    return table, len(rows) - len(usable)


def write_prompts(run: RunConfig, data: Path, paths: Paths) -> tuple[int, int, int]:
    """Write the prompts of a run; return how many, the rows of the set, and those too long.

    Args:
        run: what is trained.
        data: the training set, Parquet.
        paths: of the run.

    Raises:
        UserError: the data or the tokenizer cannot be used.
    """
    rows = read_rows(data)
    tokenizer = load_chat(paths.weights, None).tokenizer
    try:
        table, dropped = verl_prompts(run, rows, tokenizer)
    except UserError as error:
        raise UserError(f"{data}: {error}") from None
    counts = {"rows": len(rows), "dropped": dropped}
    write_parquet(paths.prompts, table, {"data": sha256_of(data), **counts})
    return table.num_rows, len(rows), dropped


@command
def main() -> None:
    """Write the prompts of a run."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.training.verl.prompts",
        description="Write the prompts of a run in the order in which verl is to take them.",
    )
    parser.add_argument("--config", type=Path, required=True, help="config.yaml of the run folder")
    parser.add_argument("--data", type=Path, required=True, help="the training set, Parquet")
    parser.add_argument("--weights", type=Path, required=True, help="folder of the initial weights")
    arguments = parser.parse_args()
    run = load_run_config(arguments.config)
    if not isinstance(run.model, VerlPolicy):
        raise UserError(f"{arguments.config}: model.backend: is local; these prompts are for verl")
    paths = Paths(run=arguments.config.parent, weights=arguments.weights)
    table, rows, dropped = write_prompts(run, arguments.data, paths)
    print(f"{paths.prompts}: {table} prompts from {rows}, of which {dropped} are too long")


if __name__ == "__main__":
    main()
