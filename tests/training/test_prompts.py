from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

from respo.cli import UserError
from respo.parquet import write_parquet
from respo.policy import character_tokenizer
from respo.training.local.prompts import Prompts, load_prompts, shuffled_epochs


def write_rows(path: Path, rows: list[tuple[str, str, str | None]]) -> Path:
    ids, prompts, answers = zip(*rows, strict=True)
    table = pa.table({"id": ids, "prompt": prompts, "answer": answers})
    write_parquet(path, table, {})
    return path


def test_each_epoch_is_a_permutation_of_its_own() -> None:
    stream = list(islice(shuffled_epochs(10, seed=3), 30))
    epochs = [stream[:10], stream[10:20], stream[20:]]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_order_depends_on_the_seed_alone() -> None:
    first = list(islice(shuffled_epochs(10, seed=3), 20))
    assert first == list(islice(shuffled_epochs(10, seed=3), 20))
    assert first != list(islice(shuffled_epochs(10, seed=4), 20))
    # NumPy's Philox(SeedSequence((3, 0, 0))).permutation(10): a change here changes every run.
    assert first[:10] == [1, 0, 2, 5, 7, 4, 8, 3, 9, 6]


def test_any_part_of_the_stream_can_be_taken(prompts: Prompts) -> None:
    whole = prompts.take(0, 130, seed=1)
    assert len(prompts.rows) == 40
    for first, count in ((0, 16), (16, 16), (32, 16), (80, 50), (39, 2)):
        assert prompts.take(first, count, seed=1) == whole[first : first + count]


def test_long_prompts_are_dropped_and_counted(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.parquet", [("a", "1+2=", "3"), ("b", "1+2+3=", "6")])
    loaded = load_prompts(path, character_tokenizer(), max_prompt_tokens=4)
    assert [row.text for row in loaded.rows] == ["1+2="]
    assert loaded.dropped == 1


def test_the_tests_of_programs_go_before_their_answer(tmp_path: Path) -> None:
    table = pa.table({"id": ["a"], "prompt": ["1+2="], "answer": ["hash"], "tests": ["{}"]})
    write_parquet(tmp_path / "t.parquet", table, {})
    loaded = load_prompts(tmp_path / "t.parquet", character_tokenizer(), max_prompt_tokens=4)
    assert [row.answer for row in loaded.rows] == ["{}"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "1+2+3=", "6")], "none of 1 prompts has at most 4 tokens"),
        ([("a", "1+2=", None)], "row 'a': prompt or answer is empty"),
        ([("a", "", "1")], "row 'a': prompt or answer is empty"),
        ([("a", "1/2=", "1")], "row 'a': .*'/' is not in the tokenizer's vocabulary"),
    ],
)
def test_unusable_rows_are_named(
    tmp_path: Path, rows: list[tuple[str, str, str | None]], message: str
) -> None:
    path = write_rows(tmp_path / "t.parquet", rows)
    with pytest.raises(UserError, match=message) as error:
        load_prompts(path, character_tokenizer(), max_prompt_tokens=4)
    assert str(error.value).startswith(str(path))
