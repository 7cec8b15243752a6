"""Weights of published models, from a folder or from a hub, which is a server on this machine."""

import hashlib
import json

import numpy as np
import pytest
import safetensors.numpy

from respo.data.published import Hashing
from respo.files import read_json

WEIGHTS = safetensors.numpy.save({"w": np.arange(4, dtype=np.float32)})
TEMPLATE = {"chat_template": "{{ messages[0]['content'] }}"}
INDEXED = b'{"weight_map": {"w": "more.safetensors"}}'
ELSEWHERE = b'{"weight_map": {"w": "../w.safetensors"}}'
INDEX = "model.safetensors.index.json"


def checkpoint(**changes):
    """Files of a checkpoint by name; dots in a name are written __, and None leaves a file out."""
    files = {
        "config.json": b"{}",
        "tokenizer_config.json": json.dumps(TEMPLATE).encode(),
        "model.safetensors": WEIGHTS,
    }
    files |= {name.replace("__", "."): content for name, content in changes.items()}
    return {name: content for name, content in files.items() if content is not None}


@pytest.fixture
def folder(tmp_path):
    """Return a function that makes a checkpoint's folder."""

    def make(**changes):
        folder = tmp_path / "model"
        folder.mkdir()
        for name, content in checkpoint(**changes).items():
            (folder / name).write_bytes(content)
        return folder

    return make


@pytest.fixture
def published(tmp_path, run_module):
    """Run the command for a checkpoint; return the process."""

    def run(place, **variables):
        (tmp_path / "config.yaml").write_text(f"checkpoint: {place}\n")
        options = ["--config", "config.yaml", "--out", "initial/big/initial.json"]
        return run_module("respo.data.published", *options, **variables)

    return run


def read(tmp_path):
    record = read_json(tmp_path / "initial" / "big" / "initial.json")
    assert record.pop("self_sha256")
    return record


def message(result, tmp_path):
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "initial").exists()
    return result.stderr


def test_a_folder(tmp_path, folder, published):
    where = folder()
    # A relative path is one of the project's folder; what else lies there does not matter.
    (where / "pytorch_model.bin").write_bytes(b"pickle")
    result = published("{path: model}")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "initial" / "big" / "weights").resolve() == where.resolve()
    record = read(tmp_path)
    assert record.pop("versions").keys() >= {"respo", "code", "safetensors"}
    assert record == {
        "weights_sha256": hashlib.sha256(WEIGHTS).hexdigest(),
        "weights": str(where),
        "revision": None,
    }


def test_weights_in_parts(tmp_path, folder, published):
    parts = {f"{name}.safetensors": safetensors.numpy.save({name: np.ones(2)}) for name in "ba"}
    index = {"weight_map": {"b": "b.safetensors", "a": "a.safetensors"}}
    where = folder(model__safetensors=None)
    for name, content in parts.items():
        (where / name).write_bytes(content)
    (where / INDEX).write_text(json.dumps(index))
    assert published(f"{{path: {where}}}").returncode == 0
    # By hand: the hash of the hashes in order of name.
    hashes = [hashlib.sha256(parts[f"{name}.safetensors"]).hexdigest() for name in "ab"]
    assert read(tmp_path)["weights_sha256"] == hashlib.sha256("".join(hashes).encode()).hexdigest()
    (tmp_path / "initial" / "big" / "initial.json").unlink()
    (where / "a.safetensors").unlink()
    result = published(f"{{path: {where}}}")
    assert result.returncode == 1
    assert f"{where}/a.safetensors: no such file, but {INDEX} names it" in result.stderr


def test_the_hub_with_its_commit_and_without_a_network(tmp_path, hub, published):
    hub.files["me/model"] = checkpoint(pytorch_model__bin=b"pickle", modeling_mine__py=b"code")
    place = "{hub: me/model, revision: main}"
    result = published(place, HF_ENDPOINT=hub.url)
    assert result.returncode == 0, result.stderr
    record = read(tmp_path)
    assert record["revision"] == hub.commit
    assert record["weights_sha256"] == hashlib.sha256(WEIGHTS).hexdigest()
    snapshot = tmp_path / "cache" / "models--me--model" / "snapshots" / hub.commit
    assert record["weights"] == str(snapshot)
    asked = len(hub.requests)
    assert published(place, HF_HUB_OFFLINE="1").returncode == 0
    assert read(tmp_path) == record
    assert len(hub.requests) == asked


def test_a_download_that_was_damaged_later(tmp_path, hub, published):
    hub.files["me/model"] = checkpoint()
    place = "{hub: me/model, revision: main}"
    assert published(place, HF_ENDPOINT=hub.url).returncode == 0
    weights = tmp_path / "cache" / "models--me--model" / "snapshots" / hub.commit
    blob = (weights / "model.safetensors").resolve()
    blob.write_bytes(WEIGHTS[:-1] + b"\x01")
    result = published(place, HF_HUB_OFFLINE="1")
    assert result.returncode == 1
    assert "model.safetensors: damaged: its SHA-256 is " in result.stderr
    assert f"delete {blob} and fetch the checkpoint again" in result.stderr


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"config__json": None}, "model/config.json: no such file, so this is no checkpoint"),
        ({"tokenizer_config__json": None}, "model/tokenizer_config.json: no such file"),
        ({"config__json": b"[]"}, "model/config.json: not a JSON object"),
        ({"config__json": b"{"}, "model/config.json: not valid JSON"),
        ({"model__safetensors": None}, "model: holds no safetensors (model.safetensors or"),
        (
            {"model__safetensors": None, "pytorch_model__bin": b"pickle"},
            "only pytorch_model.bin, which is pickled and is not read; change checkpoint.path of "
            "the model, or convert the weights with `save_pretrained`",
        ),
        (
            {"more__safetensors": WEIGHTS},
            "model/more.safetensors: is not one of the model's weights",
        ),
        ({"model__safetensors__index__json": INDEXED}, "model: holds both model.safetensors and"),
        (
            {"model__safetensors": None, "model__safetensors__index__json": b'{"weight_map": {}}'},
            "index.json: weight_map is missing or names no files",
        ),
        (
            {"model__safetensors": None, "model__safetensors__index__json": ELSEWHERE},
            "index.json: weight_map: '../w.safetensors' is not a file beside it",
        ),
        ({"model__safetensors": WEIGHTS[:-1]}, "model/model.safetensors: damaged or cut short"),
        (
            {"tokenizer_config__json": b"{}"},
            "model/tokenizer_config.json: chat_template is missing, and prompts go through it; "
            "change checkpoint.path",
        ),
        (
            {"config__json": b'{"auto_map": {"AutoModel": "modeling_mine.Mine"}}'},
            "model/config.json: auto_map: the model brings code of its own, which is never exec",
        ),
    ],
)
def test_what_cannot_be_trained(tmp_path, folder, published, changes, expected):
    where = folder(**changes)
    assert expected in message(published(f"{{path: {where}}}"), tmp_path)


def test_a_chat_template_of_its_own_file(folder, published):
    folder(tokenizer_config__json=b"{}", chat_template__jinja=b"{{ messages }}")
    assert published("{path: model}").returncode == 0


def test_pickled_weights_of_the_hub_are_not_even_downloaded(tmp_path, hub, published):
    hub.files["me/old"] = checkpoint(model__safetensors=None, pytorch_model__bin=b"pickle")
    text = message(published("{hub: me/old, revision: main}", HF_ENDPOINT=hub.url), tmp_path)
    assert "holds no safetensors" in text
    assert "change checkpoint.hub or checkpoint.revision of the model" in text
    assert [path for _, path, _ in hub.requests if path.endswith(".bin")] == []


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("{path: nowhere}", "/nowhere: no such folder; checkpoint.path must name one in Hug"),
        ("{hub: me/none, revision: main}", "me/none on the hub: no such repository"),
        ("{hub: me/none}", "config.yaml: checkpoint: hub and revision belong together"),
    ],
)
def test_no_such_checkpoint(tmp_path, hub, published, place, expected):
    assert expected in message(published(place, HF_ENDPOINT=hub.url), tmp_path)


def test_a_folder_in_the_way_of_the_link(tmp_path, folder, published):
    folder()
    (tmp_path / "initial" / "big" / "weights").mkdir(parents=True)
    result = published("{path: model}")
    assert result.returncode == 1
    assert "big/weights: is a folder with weights of another model" in result.stderr
    assert [path.name for path in (tmp_path / "initial" / "big").iterdir()] == ["weights"]


def test_progress_of_a_long_hash(tmp_path, capsys):
    path = tmp_path / "a.safetensors"
    path.write_bytes(bytes((16 << 20) + 1))
    hashing = Hashing([path], interval=0.0)
    assert hashing(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    # Told after the first of two chunks, not at the end.
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("hashed 0.0 of 0.0 GB, about ")
