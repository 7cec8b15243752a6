import json
import shutil
from pathlib import Path

import pytest
import torch

from respo.cli import UserError
from respo.files import write_json
from respo.policy import load_policy, policy_hash
from respo.training.local.initial import is_made, load_initial

INPUTS = {"config_sha256": "c", "data_sha256": "d"}
# Nothing here depends on the kind of network.
pytestmark = pytest.mark.parametrize("initial", [0], indirect=True, ids=["dense"])


@pytest.fixture
def out(tmp_path: Path, initial: Path) -> Path:
    """Weights and the record of how they were made."""
    shutil.copytree(initial, tmp_path / "weights")
    record = {**INPUTS, "weights_sha256": policy_hash(initial)}
    write_json(tmp_path / "initial.json", record)
    return tmp_path


def test_weights_come_with_their_hash(out: Path) -> None:
    policy, sha256 = load_initial(out / "weights", "cpu")
    assert sha256 == policy_hash(out / "weights")
    expected = load_policy(out / "weights").parameters()
    assert all(map(torch.equal, policy.parameters(), expected))
    assert is_made(out, INPUTS)
    assert not is_made(out, INPUTS | {"data_sha256": "other"})


def test_weights_from_elsewhere_have_no_record(out: Path) -> None:
    (out / "initial.json").unlink()
    assert load_initial(out / "weights", "cpu")[1] == policy_hash(out / "weights")
    assert not is_made(out, INPUTS)
    shutil.rmtree(out / "weights")
    with pytest.raises(UserError, match="no such file"):
        load_initial(out / "weights", "cpu")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("delete", r"model\.safetensors: no such file"),
        ("change", r"the weights are not those that initial\.json names"),
        ("config", r"config\.json: was changed or damaged after it was written"),
        ("tokenizer", r"tokenizer\.json: no such file"),
        ("list", r"initial\.json: weights_sha256 is missing"),
        ("no hash", r"initial\.json: weights_sha256 is missing"),
    ],
)
def test_what_is_lost_is_named_with_the_remedy(out: Path, damage: str, reason: str) -> None:
    weights, record = out / "weights", out / "initial.json"
    match damage:
        case "delete":
            shutil.rmtree(weights)
        case "change":
            data = bytearray((weights / "model.safetensors").read_bytes())
            data[-1] ^= 1
            (weights / "model.safetensors").write_bytes(data)
        case "config":
            (weights / "config.json").write_text("{")
        case "tokenizer":
            (weights / "tokenizer.json").unlink()
        case "list":
            record.write_text(json.dumps(["weights_sha256"]))
        case "no hash":
            record.write_text(json.dumps(INPUTS))
    with pytest.raises(UserError, match=reason) as raised:
        load_initial(weights, "cpu")
    assert str(raised.value).startswith(f"{weights}: the initial weights cannot be used (")
    assert str(raised.value).endswith(f"make them anew: snakemake --forcerun {record}")
    assert not is_made(out, INPUTS)
