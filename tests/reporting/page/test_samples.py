import hashlib

import pytest

from respo.cli import UserError
from respo.reporting.page.samples import choose, read, shortened

NAMES = [f"p{index}" for index in range(6)]
# By the rule itself: problems in the order of their SHA-256.
ORDER = sorted(NAMES, key=lambda name: hashlib.sha256(name.encode()).hexdigest())


def test_the_first_right_and_wrong_responses_in_the_order_of_the_hashes(folder, write_responses):
    # All problems have a wrong sample 0 but the first, which has a right one only.
    rows = [
        (name, sample, name == ORDER[0] or sample == 1, f"{name}.{sample}", "7")
        for name in NAMES
        for sample in (0, 1, 2)
    ]
    where = write_responses(folder(), "easy", rows)
    chosen = choose(where / "scores.parquet")
    found = [(row["problem"], row["sample"], row["correct"]) for row in chosen]
    assert found == [
        (ORDER[0], 0, True),
        (ORDER[1], 1, True),
        (ORDER[1], 0, False),
        (ORDER[2], 0, False),
    ]
    shown = read(where / "generations.parquet", chosen)
    assert [sample["response"] for sample in shown] == [f"{p}.{s}" for p, s, _ in found]
    assert shown[0] == {
        "problem": ORDER[0],
        "sample": 0,
        "correct": True,
        "extracted": "7",
        "status": "ok",
        "response_tokens": 4,
        "truncated": False,
        "prompt": f"prompt of {ORDER[0]}",
        "answer": f"gold of {ORDER[0]}",
        "response": f"{ORDER[0]}.0",
    }


def test_only_wrong_responses(folder, write_responses):
    where = write_responses(
        folder(), "easy", [("p", 1, False, "a", None), ("p", 0, False, "b", None)]
    )
    chosen = choose(where / "scores.parquet")
    assert [(row["row"], row["sample"], row["extracted"]) for row in chosen] == [(1, 0, None)]


def test_nothing_is_kept(tmp_path):
    assert choose(tmp_path / "scores.parquet") == []
    assert read(tmp_path / "generations.parquet", [{"row": 0}]) == []


def test_other_responses_than_those_judged_are_refused(folder, write_responses):
    made = folder()
    chosen = choose(write_responses(made, "easy", [("p", 0, True, "a", "1")]) / "scores.parquet")
    path = write_responses(made, "easy", [("q", 0, True, "a", "1")]) / "generations.parquet"
    with pytest.raises(UserError, match=r"generations.parquet: row 1: is not the response that"):
        read(path, chosen)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("abcdef", "abcdef"),
        ("abcdefg", "abcd […1 characters…] fg"),
        ("", ""),
    ],
)
def test_long_texts_lose_their_middle(text, short):
    assert shortened(text, 4, 2) == short


def test_long_texts_without_a_tail():
    assert shortened("abcdef", 4, 0) == "abcd […2 characters…] "
