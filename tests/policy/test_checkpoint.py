import json
import subprocess
from pathlib import Path

import pytest
import safetensors.torch
import torch

from respo.cli import UserError
from respo.policy import forward, load_policy, policy_hash, save_policy, text_files
from respo.weight_files import check_sums, read_sums

IDS_BT = torch.arange(2, 20)[None]


@pytest.fixture
def folder(policy, tmp_path) -> Path:
    save_policy(policy, tmp_path / "policy")
    return tmp_path / "policy"


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_round_trip_bit_for_bit(policy, folder, tmp_path):
    loaded = load_policy(folder)
    assert loaded.config == policy.config
    assert loaded.weights.keys() == policy.weights.keys()
    assert all(torch.equal(loaded.weights[name], w) for name, w in policy.weights.items())
    assert not any(weight.requires_grad for weight in loaded.parameters())
    save_policy(loaded, tmp_path / "again")
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    files = {path.name: path.read_bytes() for path in folder.glob("*.json")}
    assert text_files(loaded) == files


def test_a_list_of_hashes_finds_what_has_changed(folder):
    # The list is that of coreutils, which checks it.
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True)
    check_sums(folder, weights=True)
    for name in read_sums(folder):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:])
        with pytest.raises(UserError, match=rf"{name}: was changed or damaged after"):
            check_sums(folder, weights=True)
        (folder / name).write_bytes(whole)
    (folder / "model.safetensors").write_bytes(b"")
    check_sums(folder)  # those who read the weights compare `policy_hash`
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"tokenizer\.json: no such file"):
        check_sums(folder)


@pytest.mark.parametrize("text", ["", "f" * 64, "F" * 64 + "  a", "f" * 64 + "  ../a", "\xff"])
def test_a_damaged_list_of_hashes_is_named(folder, text):
    (folder / "SHA256SUMS").write_text(text)
    with pytest.raises(UserError, match="SHA256SUMS: is damaged"):
        check_sums(folder)


def test_a_folder_of_others_has_no_list_of_hashes(folder):
    (folder / "SHA256SUMS").unlink()
    (folder / "tokenizer.json").unlink()
    check_sums(folder, weights=True)


def test_weights_that_are_trained_are_saved(policy, folder):
    before = policy_hash(folder)
    weight = policy.weights["model.norm.weight"].requires_grad_()
    with torch.no_grad():
        weight += 1
    save_policy(policy, folder)
    assert policy_hash(folder) != before
    assert torch.equal(load_policy(folder).weights["model.norm.weight"], weight)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["policy"]


def test_transformers_reads_what_we_write_and_we_what_it_writes(policy, folder, tmp_path):
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    text = "3+5=8;\\boxed{8}"
    assert tokenizer(text)["input_ids"] == policy.tokenizer.encode(text)
    assert tokenizer.decode([7, 14, 2, 3, 1], skip_special_tokens=True) == "3+\\boxed{}"
    assert tokenizer.padding_side == "left"
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1)
    assert (model.generation_config.eos_token_id, model.generation_config.pad_token_id) == (1, 0)

    expected_BTV = forward(policy, IDS_BT)
    torch.testing.assert_close(model(IDS_BT).logits, expected_BTV, rtol=0, atol=1e-5)
    for name, size in (("whole", "1GB"), ("sharded", "10KB")):
        model.save_pretrained(tmp_path / name, max_shard_size=size)
        tokenizer.save_pretrained(tmp_path / name)
        assert (tmp_path / name / "model.safetensors.index.json").exists() == (name == "sharded")
        assert torch.equal(forward(load_policy(tmp_path / name), IDS_BT), expected_BTV)
        assert len(policy_hash(tmp_path / name)) == 64
    assert policy_hash(tmp_path / "whole") != policy_hash(tmp_path / "sharded")
    next((tmp_path / "sharded").glob("*00002*")).unlink()
    with pytest.raises(UserError, match=r"model-00002-of-.*no such file"):
        load_policy(tmp_path / "sharded")


def test_a_checkpoint_in_half_precision_is_held_in_single(folder):
    path = folder / "model.safetensors"
    half = {name: w.bfloat16() for name, w in safetensors.torch.load_file(path).items()}
    safetensors.torch.save_file(half, path)
    edit(folder / "config.json", dtype="bfloat16")
    policy = load_policy(folder)
    assert {weight.dtype for weight in policy.parameters()} == {torch.float32}
    assert policy.config["dtype"] == "float32"


def test_rope_theta_and_experts_under_their_older_names(policy, folder):
    config = json.loads((folder / "config.json").read_text())
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    if "num_local_experts" in config:
        config["num_experts"] = config.pop("num_local_experts")
    (folder / "config.json").write_text(json.dumps(config))
    assert torch.equal(forward(load_policy(folder), IDS_BT), forward(policy, IDS_BT))


def test_the_copy_of_a_tied_head_is_left_out(policy, folder):
    path = folder / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
    safetensors.torch.save_file(weights, path)
    assert load_policy(folder).weights.keys() == policy.weights.keys()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(UserError, match="nowhere"):
        load_policy(tmp_path / "nowhere")
    with pytest.raises(UserError, match="nowhere"):
        policy_hash(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]
)
@pytest.mark.parametrize("damage", ["missing", "empty", "cut"])
def test_a_damaged_file_is_named(folder, name, damage):
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(b"" if damage == "empty" else content[: len(content) // 2])
    with pytest.raises(UserError, match=f"policy/{name}"):
        load_policy(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, "model_type is 'llama'"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"use_sliding_window": True}, "use_sliding_window is True"),
        ({"mlp_only_layers": [0]}, "mlp_only_layers is "),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "rotary"),
        ({"rope_parameters": {"rope_type": "default"}}, "key 'rope_theta' is missing"),
        ({"hidden_size": 25}, r"tensor model\S+ is .* but config.json means"),
        ({"num_hidden_layers": 3}, r"tensor model.layers.2\S+ is missing from the weights"),
        ({"num_hidden_layers": 1}, r"tensor model.layers.1\S+ is not expected in the weights"),
        ({"tie_word_embeddings": False}, r"lm_head.weight is missing"),
    ],
)
def test_another_kind_of_model_is_refused(folder, changes, message):
    edit(folder / "config.json", **changes)
    with pytest.raises(UserError, match=message):
        load_policy(folder)


def test_a_configuration_that_lacks_a_key(folder):
    config = json.loads((folder / "config.json").read_text())
    del config["head_dim"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"config\.json: key 'head_dim' is missing"):
        load_policy(folder)


def test_an_expert_that_is_missing(make_policy, tmp_path):
    save_policy(make_policy(4), tmp_path)
    path = tmp_path / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    del weights["model.layers.0.mlp.experts.3.up_proj.weight"]
    safetensors.torch.save_file(weights, path)
    with pytest.raises(UserError, match="experts"):
        load_policy(tmp_path)


def test_weights_that_are_not_finite(policy, folder):
    policy.weights["model.norm.weight"][3] = torch.nan
    save_policy(policy, folder)
    with pytest.raises(UserError, match=r"policy: tensor model\.norm\.weight is not finite"):
        load_policy(folder)


def test_an_index_without_a_map(folder):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(UserError, match=r"index.json: weight_map is missing"):
        load_policy(folder)


def test_a_failed_write_leaves_the_older_folder(policy, folder, monkeypatch):
    before = policy_hash(folder)
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.name == "model.safetensors":
            raise OSError(28, "No space left on device", str(path))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left") as raised:
        save_policy(policy, folder)
    assert raised.value.filename == str(folder)
    assert policy_hash(folder) == before
    assert sorted(path.name for path in folder.parent.iterdir()) == ["policy"]
