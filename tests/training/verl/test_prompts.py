"""The prompts of a run in the order and form in which verl takes them."""

import json

import pyarrow as pa
import pytest
import yaml

from respo.cli import UserError
from respo.config.yaml import canonical
from respo.parquet import made_from, read_parquet, write_parquet
from respo.training.local.prompts import shuffled_epochs
from respo.training.verl import prompts
from respo.training.verl.prompts import verl_prompts

ROWS = [{"id": f"p{i}", "prompt": "word " * (i + 1), "answer": str(i)} for i in range(5)]


class Words:
    """A tokenizer of words, whose template adds `user:` and, without thinking, `quick`."""

    def apply_chat_template(self, chat, add_generation_prompt, tokenize, enable_thinking=True):
        assert add_generation_prompt
        assert not tokenize
        (message,) = chat
        return f"{message['role']}: {message['content']} {'' if enable_thinking else 'quick'}"

    def __call__(self, text, add_special_tokens):
        assert not add_special_tokens
        return {"input_ids": text.split()}


@pytest.fixture
def run(verl_run):
    """Return a function that makes a run of 4 updates of 2 prompts."""

    def make(model="qwen3-1.7b-base", **changes):
        return verl_run(
            model,
            staleness=2,
            updates=4,
            mini_batch=2,
            checkpoints=[4],
            evaluation={"updates": [4], "temperature": 1.0, "top_p": 1.0, "seed": 0},
            optimizer={
                "learning_rate": 1e-6,
                "warmup_updates": 0,
                "betas": [0.9, 0.95],
                "weight_decay": 0.1,
                "gradient_clip": 1.0,
            },
            **changes,
        )[0]

    return make


def test_rows_are_those_of_local_training(run):
    table, dropped = verl_prompts(run(), ROWS, Words())
    # 8 prompts: one epoch of 5 and 3 of the next.
    order = [index for index, _ in zip(shuffled_epochs(5, seed=3), range(8), strict=False)]
    assert [row["id"] for row in table["extra_info"].to_pylist()] == [f"p{i}" for i in order]
    assert dropped == 0
    first = table.to_pylist()[0]
    assert first == {
        "data_source": "respo",
        "prompt": [{"role": "user", "content": ROWS[order[0]]["prompt"]}],
        "reward_model": {"ground_truth": ROWS[order[0]]["answer"]},
        "extra_info": {"index": order[0], "id": f"p{order[0]}"},
    }


# With the template the prompts have 2 to 6 tokens, without thinking 3 to 7.
@pytest.mark.parametrize(
    ("model", "limit", "dropped"),
    [("qwen3-1.7b-base", 6, 0), ("qwen3-1.7b-base", 4, 2), ("qwen3-4b", 6, 1)],
)
def test_longer_prompts_are_dropped_and_counted(run, model, limit, dropped):
    changes = {"max_prompt_tokens": limit}
    table, found = verl_prompts(run(model, model_changes=changes), ROWS, Words())
    assert found == dropped
    assert {row["id"] for row in table["extra_info"].to_pylist()} <= {
        f"p{i}" for i in range(5 - dropped)
    }


def test_no_prompt_is_left(run):
    with pytest.raises(UserError, match="none of 5 prompts has at most 1 tokens; raise max_prompt"):
        verl_prompts(run(model_changes={"max_prompt_tokens": 1}), ROWS, Words())


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def weights(tmp_path):
    """A folder with a tokenizer of words and a chat template."""
    folder = tmp_path / "weights"
    folder.mkdir()
    vocabulary = {"?": 0, "word": 1, "user": 2}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "?",
        "chat_template": "{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(configuration))
    return folder


@pytest.fixture
def command(run, weights, tmp_path, monkeypatch):
    """Return a function that runs the command and gives the run folder."""
    folder, data = tmp_path / "run", tmp_path / "data.parquet"
    folder.mkdir()
    write_parquet(data, pa.Table.from_pylist(ROWS), {})

    def call(model="qwen3-1.7b-base", **changes):
        config = run(model, **changes)
        (folder / "config.yaml").write_text(canonical(config.model_dump(mode="json")))
        arguments = ["--config", folder / "config.yaml", "--data", data, "--weights", weights]
        monkeypatch.setattr("sys.argv", ["prompts", *map(str, arguments)])
        prompts.main()
        return folder

    return call


def test_the_command_writes_the_rows(command, capsys):
    folder = command(model_changes={"max_prompt_tokens": 4})
    table = read_parquet(folder / "verl" / "prompts.parquet")
    assert table.num_rows == 8
    assert made_from(table) | {"data": ""} == {"data": "", "rows": 5, "dropped": 2}
    assert "8 prompts from 5, of which 2 are too long" in capsys.readouterr().out


def test_the_command_names_the_data_without_a_short_prompt(command):
    with pytest.raises(SystemExit, match=r"data\.parquet: none of 5 prompts"):
        command(model_changes={"max_prompt_tokens": 1})


def test_the_command_needs_a_tokenizer(command, weights):
    for file in weights.iterdir():
        file.unlink()
    with pytest.raises(SystemExit, match="weights: no tokenizer can be read"):
        command()


def test_the_command_needs_a_chat_template(command, weights):
    path = weights / "tokenizer_config.json"
    values = json.loads(path.read_text())
    del values["chat_template"]
    path.write_text(json.dumps(values))
    with pytest.raises(SystemExit, match="weights: the tokenizer has no chat template"):
        command()


def test_the_command_refuses_a_local_run(verl_study, command, tmp_path):
    folder = command()
    resolved = verl_study(models=["qwen3-tiny"], mini_batch=8)
    config = resolved.run_config(resolved.runs()[0], "").model_dump(mode="json")
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    with pytest.raises(SystemExit, match=r"config\.yaml: model\.backend: is local"):
        prompts.main()
