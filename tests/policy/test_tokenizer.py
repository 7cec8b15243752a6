import json

import pytest

from respo.cli import UserError
from respo.policy.tokenizer import VOCABULARY, character_tokenizer, load_tokenizer


def test_twenty_tokens_in_the_documented_order():
    expected = ["<pad>", "<eos>", "\\boxed{", "}", *"0123456789", *"+-*=;,"]
    assert expected == VOCABULARY


def test_text_to_ids_and_back():
    tokenizer = character_tokenizer()
    text = "3+5=8;\\boxed{8}"
    ids = tokenizer.encode(text)
    # By the order above: 3 is 7, + is 14, 5 is 9, = is 17, 8 is 12, ; is 18, the box 2, } is 3.
    assert ids == [7, 14, 9, 17, 12, 18, 2, 12, 3]
    assert tokenizer.decode(ids) == text


def test_special_tokens_are_not_decoded():
    tokenizer = character_tokenizer()
    assert (tokenizer.pad_id, tokenizer.eos_id) == (0, 1)
    assert tokenizer.decode([7, 1, 0, 0]) == "3"


@pytest.mark.parametrize("text", ["3+a=", "3 +5", "3\n", "\\boxed", "3<eos>", "<pad>", "é"])
def test_a_character_outside_the_vocabulary_is_an_error(text: str):
    with pytest.raises(UserError, match="not in the tokenizer's vocabulary"):
        character_tokenizer().encode(text)


def test_the_error_names_the_character():
    with pytest.raises(UserError, match="'a' is not in"):
        character_tokenizer().encode("3+a=")


def test_an_empty_text_has_no_tokens():
    assert character_tokenizer().encode("") == []


def save(folder, config: dict) -> None:
    (folder / "tokenizer.json").write_text(character_tokenizer().backend.to_str())
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def test_special_tokens_may_be_objects(tmp_path):
    # As older versions of transformers write them.
    save(tmp_path, {"pad_token": {"content": "<pad>"}, "eos_token": {"content": "<eos>"}})
    tokenizer = load_tokenizer(tmp_path)
    assert (tokenizer.pad_id, tokenizer.eos_id) == (0, 1)
    assert tokenizer.encode("3=") == [7, 17]


@pytest.mark.parametrize("config", [{"pad_token": "<pad>"}, {"pad_token": "?", "eos_token": "="}])
def test_a_special_token_must_exist(tmp_path, config: dict):
    save(tmp_path, config)
    with pytest.raises(UserError, match=r"tokenizer_config.json: (eos|pad)_token is"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "{}", '{"model": 3}'])
def test_a_damaged_file_is_named(tmp_path, text: str):
    save(tmp_path, {"pad_token": "<pad>", "eos_token": "<eos>"})
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(UserError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)
