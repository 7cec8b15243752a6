"""Responses beside the cells of the small results folder."""

import pyarrow as pa
import pytest

from respo.parquet import write_parquet


def _write(made, benchmark, rows, method="grpo", seed=1):
    """Write scores and generations: (problem, sample, correct, response, extracted) of each."""
    run = made.run(method, seed=seed)
    folder = run.cell(made.path, made.study.checkpoints(run)[-1], benchmark).parent
    problem, sample, correct, response, extracted = map(list, zip(*rows, strict=True))
    both = {
        "problem_id": problem,
        "sample": pa.array(sample, pa.int32()),
        "answer": [f"gold of {name}" for name in problem],
        "response_tokens": pa.array([len(text) for text in response], pa.int32()),
        "truncated": [False] * len(rows),
    }
    scores = {
        **both,
        "correct": correct,
        "extracted": pa.array(extracted, pa.string()),
        "status": ["unparsed" if text is None else "ok" for text in extracted],
    }
    generations = {
        **both,
        "prompt": [f"prompt of {name}" for name in problem],
        "response": response,
    }
    write_parquet(folder / "scores.parquet", pa.table(scores), {})
    write_parquet(folder / "generations.parquet", pa.table(generations), {})
    return folder


@pytest.fixture
def write_responses():
    """A function that writes the responses of a cell."""
    return _write
