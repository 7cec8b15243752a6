import hashlib
from pathlib import Path

import pytest

from respo.cli import UserError
from respo.policy import Policy, save_policy
from respo.policy.chat import load_chat

TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}={% endfor %}"
    "{% if add_generation_prompt %}<pad>{% endif %}"
    "{% if enable_thinking is defined %}{{ '1' if enable_thinking else '0' }}{% endif %}"
)


@pytest.fixture
def checkpoint(make_policy, tmp_path: Path) -> Path:
    policy: Policy = make_policy()
    save_policy(policy, tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


@pytest.mark.parametrize(("thinking", "end"), [(None, ""), (True, "1"), (False, "0")])
def test_prompts_go_through_the_template(checkpoint: Path, thinking, end: str) -> None:
    (checkpoint / "chat_template.jinja").write_text(TEMPLATE)
    chat = load_chat(checkpoint, thinking)
    # The vocabulary: <pad> <eos> \boxed{ } 0 1 ...; "=" is its 18th token.
    ids = {"1": 5, "2": 6, "0": 4, "=": 17}
    assert chat.encode("12") == [ids["1"], ids["2"], ids["="], 0, *(ids[x] for x in end)]
    assert chat.template_sha256 == hashlib.sha256(TEMPLATE.encode()).hexdigest()


def test_no_template(checkpoint: Path) -> None:
    with pytest.raises(UserError, match="checkpoint: the tokenizer has no chat template, and"):
        load_chat(checkpoint, None)


@pytest.mark.parametrize("template", ["{% for %}", "{{ raise_exception('no') }}", "{{ m.n.o }}"])
def test_a_template_that_fails(checkpoint: Path, template: str) -> None:
    (checkpoint / "chat_template.jinja").write_text(template)
    with pytest.raises(UserError, match="checkpoint: its chat template fails on a prompt"):
        load_chat(checkpoint, None).encode("12")


@pytest.mark.parametrize("damage", ["missing", "no JSON"])
def test_no_tokenizer(checkpoint: Path, damage: str) -> None:
    if damage == "missing":
        (checkpoint / "tokenizer.json").unlink()
    else:
        (checkpoint / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match="checkpoint: no tokenizer can be read"):
        load_chat(checkpoint, None)
