"""Reading the problems of a benchmark, and checking that a model can answer them."""

from pathlib import Path

from respo.cli import UserError
from respo.evaluation.engines import Engine
from respo.parquet import read_parquet

# Where a file that somebody names comes from.
HELD_OUT = "results/STUDY/data/held_out/NAME.parquet"
REMEDY = (
    f"Give the Parquet file {HELD_OUT}, which `snakemake {HELD_OUT} --config study=STUDY` makes; "
    "if it is that file, delete it and start again"
)


def read_problems(path: Path) -> list[dict[str, str]]:
    """Read the rows of a benchmark.

    Raises:
        UserError: the file is damaged or empty, a value is missing or an id stands twice.
    """
    table = read_parquet(path, ["id", "prompt", "answer"], REMEDY)
    problems = table.to_pylist()
    if not problems:
        raise UserError(f"{path}: there are no problems in it; make it anew")
    seen: set[str] = set()
    for row, problem in enumerate(problems):
        for column, value in problem.items():
            if not isinstance(value, str):
                raise UserError(f"{path}: row {row}: {column} is {value!r}; write a text")
        if problem["id"] in seen:
            raise UserError(f"{path}: row {row}: id {problem['id']!r} stands twice; make it unique")
        seen.add(problem["id"])
    return problems


def encode(
    path: Path,
    problems: list[dict[str, str]],
    engine: Engine,
    max_prompt_tokens: int | None,
    max_response_tokens: int,
) -> list[list[int]]:
    """Token ids of the prompts.

    Raises:
        UserError: a prompt is empty, too long, or leaves no room for a response.
    """
    prompts = []
    for problem in problems:
        where = f"{path}: problem {problem['id']!r}"
        try:
            prompt = engine.encode(problem["prompt"])
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        if not problem["prompt"] or not prompt:
            raise UserError(f"{where}: the prompt is empty")
        if max_prompt_tokens is not None and len(prompt) > max_prompt_tokens:
            raise UserError(
                f"{where}: {len(prompt)} tokens of prompt are more than max_prompt_tokens "
                f"{max_prompt_tokens}; raise it or leave the problem out"
            )
        if len(prompt) + max_response_tokens > engine.positions:
            raise UserError(
                f"{where}: {len(prompt)} tokens of prompt and {max_response_tokens} of response "
                f"are more than the {engine.positions} positions of the checkpoint; lower "
                f"max_response_tokens"
            )
        prompts.append(prompt)
    return prompts
