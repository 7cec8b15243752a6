import random
import re

import pytest

from respo.data import chain


@pytest.mark.parametrize(
    ("prompt", "answer"),
    # By hand, left to right modulo 10: 3+5=8, 8*2=16 -> 6, 6-7=-1 -> 9.
    [("3+5*2-7=", "9"), ("3+5=", "8"), ("0-1=", "9"), ("9*9=", "1"), ("1+1*0-1+2=", "1")],
)
def test_answer(prompt, answer):
    assert chain.answer(prompt) == answer


def test_demonstrations():
    rng = random.Random(0)
    full = chain.demonstration("3+5*2-7=", rng, direct=0.0, corrupted=0.0)
    assert full == r"3+5=8;8*2=6;6-7=9;\boxed{9}"
    assert chain.demonstration("3+5*2-7=", rng, direct=1.0, corrupted=0.0) == r"\boxed{9}"


def test_a_corrupted_step_is_carried_on():
    rng = random.Random(0)
    for _ in range(50):
        text = chain.demonstration("3+5*2-7=", rng, direct=0.0, corrupted=1.0)
        results = re.findall(r"=(\d);", text)
        lefts = re.findall(r"(\d)[+*-]\d=", text)
        assert lefts == ["3", *results[:-1]]
        assert text.endswith(f"\\boxed{{{results[-1]}}}")


def test_shares_of_direct_and_corrupted():
    rng = random.Random(0)
    texts = [chain.demonstration("3+5=", rng, direct=0.5, corrupted=0.1) for _ in range(4000)]
    direct = sum(text == r"\boxed{8}" for text in texts)
    wrong = sum(";" in text and "=8;" not in text for text in texts)
    # Binomial: 2000 +- 4*32; a random digit is right once in ten: 2000 * 0.09 = 180 +- 4*13.
    assert abs(direct - 2000) < 128
    assert abs(wrong - 180) < 52


def test_training_and_held_out_prompts_are_distinct_and_disjoint():
    train = chain.distinct_prompts(1, 3, 2000, seed=1, held_out=False)
    held_out = chain.distinct_prompts(1, 3, 500, seed=1, held_out=True)
    assert len(set(train)) == 2000
    assert len(set(held_out)) == 500
    assert not set(train) & set(held_out)
    assert {text.count("=") for text in train} == {1}
    assert {len(re.findall(r"[+*-]", text)) for text in train} == {1, 2, 3}


def test_the_same_seed_gives_the_same_prompts():
    first = chain.distinct_prompts(1, 8, 50, seed=3, held_out=True)
    assert first == chain.distinct_prompts(1, 8, 50, seed=3, held_out=True)
    assert first != chain.distinct_prompts(1, 8, 50, seed=4, held_out=True)


def test_more_prompts_than_there_are():
    # One operator: 10 * 3 * 10 = 300 prompts, about a quarter of them held out.
    with pytest.raises(ValueError, match="distinct prompts"):
        chain.distinct_prompts(1, 1, 200, seed=0, held_out=True)
