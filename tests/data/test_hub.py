"""Data sets from a hub, which here is a small server on this machine."""

import hashlib
import shutil
from pathlib import Path
from unittest.mock import Mock

import httpx
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import close_session, constants, errors

from respo.cli import UserError
from respo.data.hub import fetch, fetch_model
from respo.parquet import made_from

CONFIG = """\
source: rows
hub: me/sums
revision: {revision}
files: [a.jsonl, more/b.jsonl]
fields: {{prompt: q, answer: a}}
"""
A, B = b'{"q": "1+1", "a": 2}\n', b'{"q": "1+2", "a": 3}\n'
COMMIT = "c" * 40


@pytest.fixture
def make(tmp_path, hub, run_module):
    """Make the rows of a configuration; return the process."""
    hub.files["me/sums"] = {"a.jsonl": A, "more/b.jsonl": B}

    def run(revision="main", **variables):
        text = CONFIG.format(revision=revision)
        (tmp_path / "c.yaml").write_text(text)
        options = ["--config", "c.yaml", "--side", "train", "--out", "out.parquet"]
        return run_module("respo.data", *options, **{"HF_ENDPOINT": hub.url, **variables})

    return run


def message(result):
    assert result.returncode == 1, result.stdout + result.stderr
    assert "hf_secret" not in result.stdout + result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert "Traceback" not in result.stderr
    return lines[0]


def test_rows_of_the_hub_with_commit_and_checksums(tmp_path, make, hub):
    result = make()
    assert result.returncode == 0, result.stderr
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.to_pydict() == {
        "id": ["row-00000", "row-00001"],
        "prompt": ["1+1", "1+2"],
        "answer": ["2", "3"],
    }
    files = made_from(table)["files"]
    assert files["commit"] == COMMIT
    assert files["sha256"] == {
        "a.jsonl": hashlib.sha256(A).hexdigest(),
        "more/b.jsonl": hashlib.sha256(B).hexdigest(),
    }
    # The token goes to the hub and nowhere else.
    assert "Bearer hf_secret" in {token for _, _, token in hub.requests}
    assert "hf_secret" not in result.stdout + result.stderr
    assert b"hf_secret" not in (tmp_path / "out.parquet").read_bytes()
    # After the first file the branch is not asked again: all are of one commit.
    assert [path for _, path, _ in hub.requests if "/main/" in path and "b.jsonl" in path] == []


def test_a_pinned_commit_is_downloaded_once(tmp_path, make, hub):
    assert make(COMMIT).returncode == 0
    first = (tmp_path / "out.parquet").read_bytes()
    asked = len(hub.requests)
    assert make(COMMIT).returncode == 0
    assert len(hub.requests) == asked
    assert (tmp_path / "out.parquet").read_bytes() == first


def test_without_a_network_the_cache_serves(tmp_path, make, hub):
    assert make().returncode == 0
    asked = len(hub.requests)
    (tmp_path / "out.parquet").unlink()
    result = make(HF_HUB_OFFLINE="1")
    assert result.returncode == 0, result.stderr
    assert len(hub.requests) == asked
    assert made_from(pq.read_table(tmp_path / "out.parquet"))["files"]["commit"] == COMMIT


def test_neither_network_nor_cache(make):
    text = message(make(HF_HUB_OFFLINE="1"))
    assert "me/sums on the hub: a.jsonl at main is not in the cache" in text
    assert "python -m respo.data.prefetch" in text


@pytest.fixture
def in_process(hub, tmp_path, monkeypatch):
    """huggingface_hub of this process asks the small hub."""
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    hub.files["me/sums"] = {"a.jsonl": A, "more/b.jsonl": B}
    yield
    close_session()


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("repository", "revision", "file", "expected"),
    [
        ("me/none", "main", "a.jsonl", "me/none on the hub: no such repository, or a private one"),
        ("me/sums", "v9", "a.jsonl", "me/sums on the hub: no revision 'v9'; change revision"),
        ("me/sums", "main", "c.jsonl", "no file 'c.jsonl' at main; change files; there are a.j"),
        ("me/a--b", "main", "a.jsonl", "me/a--b on the hub: not a name that the hub allows"),
        ("me/gated", "main", "a.jsonl", "me/gated on the hub: needs your consent"),
    ],
)
def test_what_the_hub_refuses(hub, repository, revision, file, expected):
    hub.errors = {"me/gated": (403, "GatedRepo")}
    with pytest.raises(UserError) as error:
        fetch(repository, revision, [file])
    assert expected in str(error.value)


@pytest.mark.usefixtures("in_process")
def test_all_files_are_of_one_commit_while_the_branch_moves(hub):
    first = fetch("me/sums", "main", ["a.jsonl"])
    hub.commit = "d" * 40
    assert fetch("me/sums", "main", ["a.jsonl"]).commit == "d" * 40
    assert fetch("me/sums", first.commit, ["a.jsonl"]) == first


@pytest.mark.usefixtures("in_process")
def test_a_model_is_a_folder_without_anything_pickled_or_executed(hub):
    hub.files["me/model"] = {
        "config.json": b"{}",
        "model.safetensors": b"weights",
        "pytorch_model.bin": b"pickle",
        "modeling_mine.py": b"code",
    }
    folder = fetch_model("me/model", "main")
    assert folder.name == COMMIT
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    with pytest.raises(UserError, match="me/none on the hub: no such repository"):
        fetch_model("me/none", "main")


def _status(status):
    response = httpx.Response(status, request=httpx.Request("GET", "http://hub?token=hf_secret"))
    return errors.HfHubHTTPError("token=hf_secret", response=response)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (_status(500), "me/sums on the hub: a.jsonl at main: HTTP status 500; try again later"),
        (httpx.ReadTimeout("hf_secret"), "me/sums on the hub: a.jsonl at main: ReadTimeout; try"),
        (
            httpx.ConnectError("hf_secret"),
            "a.jsonl at main is not in the cache, and the hub is out of reach; run `python -m "
            "respo.data.prefetch`",
        ),
    ],
)
def test_a_broken_connection_is_told_without_its_address(monkeypatch, error, expected):
    monkeypatch.setattr("huggingface_hub.hf_hub_download", Mock(side_effect=error))
    with pytest.raises(UserError) as told:
        fetch("me/sums", "main", ["a.jsonl"])
    assert expected in str(told.value)
    assert "hf_secret" not in str(told.value)


STUDY = """\
title: Sums
methods: [grpo]
models: [qwen3-tiny, big]
baselines: [published]
staleness: [1]
seeds: [1]
updates: 1
mini_batch: 8
rollouts_per_prompt: 2
temperature: 1.0
loss_aggregation: token-mean
optimizer: {learning_rate: 1.0, warmup_updates: 0, betas: [0.9, 0.9], weight_decay: 0.0,
  gradient_clip: 1.0}
checkpoints: [1]
train_data: sums
benchmarks: [sums]
evaluation: {updates: [1], temperature: 1.0, top_p: 1.0, seed: 0}
tables: []
figures: []
"""


@pytest.fixture
def config_folder(tmp_path, hub):
    """A study whose training set and benchmark are files of the hub."""
    hub.files["me/sums"] = {"a.jsonl": A, "more/b.jsonl": B}
    folder = tmp_path / "config"
    shutil.copytree(Path(__file__).parents[2] / "config", folder)
    (folder / "studies" / "sums.yaml").write_text(STUDY)
    for name, file, repository in [
        ("big", "qwen3-1.7b-base", "me/model"),
        ("published", "deepscaler-1.5b", "me/published"),
    ]:
        hub.files[repository] = {"config.json": b"{}"}
        model = yaml.safe_load((folder / "models" / f"{file}.yaml").read_text())
        model["checkpoint"] = {"hub": repository, "revision": "main"}
        (folder / "models" / f"{name}.yaml").write_text(yaml.safe_dump(model))
    text = CONFIG.format(revision="main")
    hub.files["me/more"] = {"c.jsonl": B}
    other = {"source": "rows", "hub": "me/more", "revision": "main", "files": ["c.jsonl"]}
    rows = yaml.safe_load(text)
    union = {"source": "union", "parts": [rows, {**other, "fields": {**rows["fields"]}}]}
    (folder / "datasets" / "sums.yaml").write_text(yaml.safe_dump(union))
    (folder / "benchmarks" / "sums.yaml").write_text(
        text.replace("a.jsonl, ", "")
        + "label: Sums\nversion: 1\nsamples: 1\nverifier: strict_box\n"
    )


@pytest.mark.usefixtures("config_folder")
def test_prefetch_fills_a_folder_for_nodes_without_a_network(tmp_path, hub, make, run_module):
    options = ["--study", "sums", "--folder", "shared/hub"]
    result = run_module("respo.data.prefetch", *options, HF_ENDPOINT=hub.url)
    assert result.returncode == 0, result.stderr
    digest = hashlib.sha256(A).hexdigest()
    assert f"me/sums {COMMIT} a.jsonl sha256 {digest}\n" in result.stdout
    assert f"\nme/model {COMMIT}\n" in result.stdout
    assert f"\nme/published {COMMIT}\n" in result.stdout
    assert f"me/more {COMMIT} c.jsonl sha256 " in result.stdout
    assert "study sums: 6 files and models of the hub are here" in result.stdout
    assert not (tmp_path / "cache").exists()
    cache = str(tmp_path / "shared" / "hub")
    assert make(HF_HUB_CACHE=cache, HF_HUB_OFFLINE="1").returncode == 0


@pytest.mark.usefixtures("config_folder")
def test_prefetch_of_a_study_that_there_is_not(run_module):
    result = run_module("respo.data.prefetch", "--study", "sum")
    assert "'sum' is not a file of config/studies" in message(result)


@pytest.mark.usefixtures("config_folder")
def test_prefetch_names_a_folder_of_weights_that_is_not_there(tmp_path, hub, run_module):
    path = tmp_path / "config" / "models" / "published.yaml"
    model = yaml.safe_load(path.read_text()) | {"checkpoint": {"path": "/none"}}
    path.write_text(yaml.safe_dump(model))
    result = run_module("respo.data.prefetch", "--study", "sums", HF_ENDPOINT=hub.url)
    assert "study sums: 5 files and models of the hub are here" in result.stdout
    assert "models/published.yaml: checkpoint.path: /none: no such folder" in message(result)
