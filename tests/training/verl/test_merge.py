"""Checkpoints out of verl's states: by verl's own model merger, or as Megatron has written them."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from respo.cli import UserError
from respo.files import read_json
from respo.policy import load_policy, policy_hash, save_policy
from respo.training.verl import merge as module
from respo.training.verl import states
from respo.training.verl.merge import merge, merged, merged_hash

HERE = Path(__file__).parent
needs_verl = [
    pytest.mark.verl,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="verl is not installed"),
]


@pytest.fixture
def config(verl_run):
    """Return a function that makes a run's configuration; N = 8."""
    return lambda model: verl_run(model)[0]


@pytest.fixture
def megatron(tmp_path, make_policy):
    """A run of Megatron's engine with a state of update 256, which is that of the start."""
    weights = tmp_path / "weights"
    save_policy(make_policy(4), weights)
    saved = states.state(tmp_path / "verl" / "checkpoints", 32) / "actor" / "model" / "huggingface"
    shutil.copytree(weights, saved)
    (saved / "tokenizer.json").write_text("written by another version")
    return tmp_path, weights, saved


def test_megatrons_weights_are_taken_as_they_are(megatron, config):
    run, weights, saved = megatron
    sha256 = merge(run, config("qwen3-30b-a3b-base"), 256, weights)
    folder = merged(run, 256)
    assert sha256 == policy_hash(folder) == policy_hash(saved) == merged_hash(run, 256)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        path.name for path in weights.iterdir()
    )
    assert (folder / "tokenizer.json").read_bytes() == (weights / "tokenizer.json").read_bytes()
    # Not links: verl would write into what is evaluated.
    assert not (folder / "model.safetensors").samefile(saved / "model.safetensors")


def test_weights_in_several_files(megatron, config):
    run, weights, saved = megatron
    for folder in (weights, saved):
        (folder / "model.safetensors").rename(folder / "model-1.safetensors")
        names = {"model.embed_tokens.weight": "model-1.safetensors"}
        index = {"metadata": {}, "weight_map": names}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert merge(run, config("qwen3-30b-a3b-base"), 256, weights) == policy_hash(weights)
    assert (merged(run, 256) / "model-1.safetensors").is_file()


def test_a_file_that_is_not_there_is_told(megatron, config):
    run, weights, saved = megatron
    (saved / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"model\.safetensors: no such file; verl has not saved it"):
        merge(run, config("qwen3-30b-a3b-base"), 256, weights)
    assert not merged(run, 256).exists()
    assert list((run / "checkpoints").iterdir()) == []


def test_a_full_disk_leaves_nothing_half_written(megatron, config, monkeypatch):
    run, weights, _ = megatron

    def full(source, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(module.shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left on device") as error:
        merge(run, config("qwen3-30b-a3b-base"), 256, weights)
    assert error.value.filename == str(merged(run, 256))
    assert list((run / "checkpoints").iterdir()) == []


def test_a_merger_that_fails_is_told(tmp_path, config, monkeypatch):
    monkeypatch.setattr(module.sys, "executable", "false")
    (tmp_path / "verl").mkdir()
    with pytest.raises(UserError, match=r"failed with exit code 1; .*merge.log says why"):
        merge(tmp_path, config("qwen3-1.7b-base"), 256, tmp_path)


@pytest.fixture(scope="module")
def saved_shards(tmp_path_factory, save_tiny_model):
    """Two models, and the state of each that the FSDP engine saves on two ranks at the start."""
    folders = [tmp_path_factory.mktemp(name) for name in ("head", "tied")]
    paths = []
    for folder in folders:
        weights, actor = folder / "weights", states.state(folder / "verl/checkpoints", 32) / "actor"
        save_tiny_model(weights)
        paths += [weights, actor]
    tie(folders[1] / "weights")
    command = [sys.executable, HERE / "save_shards.py", *paths]
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return dict(zip(("head", "tied"), folders, strict=True))


@pytest.fixture(params=["head", "tied"])
def sharded(request, tmp_path, saved_shards):
    """A run of the FSDP engine on two ranks with a state of update 256, that of the start."""
    run = Path(shutil.copytree(saved_shards[request.param], tmp_path / "run"))
    actor = states.state(run / "verl" / "checkpoints", 32) / "actor"
    assert len(list(actor.glob("model_world_size_2_rank_*.pt"))) == 2
    return run, run / "weights", actor


def tie(folder):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, tie_word_embeddings=True)
    model.save_pretrained(folder)
    assert read_json(folder / "config.json")["tie_word_embeddings"]


class TestShards:
    pytestmark = needs_verl

    def test_shards_become_one(self, sharded, config):
        run, weights, _ = sharded
        sha256 = merge(run, config("qwen3-1.7b-base"), 256, weights)
        folder = merged(run, 256)
        assert sha256 == policy_hash(folder) == merged_hash(run, 256)
        before, after = load_policy(weights), load_policy(folder)
        assert before.weights.keys() == after.weights.keys()
        for name, weight in before.weights.items():
            assert torch.equal(weight.bfloat16().float(), after.weights[name]), name
        names = {path.name for path in folder.iterdir()}
        assert names >= {"config.json", "generation_config.json", "tokenizer_config.json"}
        for name in names - {"config.json", "model.safetensors", "SHA256SUMS"}:
            assert (folder / name).read_bytes() == (weights / name).read_bytes()
        self.transformers_reads_it(folder, after)

    def transformers_reads_it(self, folder, policy):
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        head, embedding = model.lm_head.weight, model.model.embed_tokens.weight
        assert (head is embedding) == policy.config["tie_word_embeddings"]
        assert torch.equal(embedding, policy.weights["model.embed_tokens.weight"])

    def test_shards_in_a_wrong_order_are_refused(self, sharded, config):
        run, weights, actor = sharded
        first, second = (actor / f"model_world_size_2_rank_{rank}.pt" for rank in (0, 1))
        first.rename(actor / "aside")
        second.rename(first)
        (actor / "aside").rename(second)
        with pytest.raises(UserError, match="is not the trained one"):
            merge(run, config("qwen3-1.7b-base"), 256, weights)

    def test_a_missing_shard_is_told(self, sharded, config):
        run, weights, actor = sharded
        (actor / "model_world_size_2_rank_1.pt").unlink()
        with pytest.raises(UserError, match="verl's model merger failed with exit code 1"):
            merge(run, config("qwen3-1.7b-base"), 256, weights)
        assert "rank_1.pt" in (run / "verl" / "merge.log").read_text()
