import json
import sys
from pathlib import Path

import pytest

from respo.evaluation.baseline import main
from respo.files import read_json, sha256_of


def run(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    out = folder / "run" / "train.json"
    arguments = ["--initial", str(folder / "initial.json"), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["baseline", *arguments])
    main()
    return out


def test_a_run_that_ended_before_its_first_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "initial.json").write_text(json.dumps({"weights_sha256": "w", "weights": "/x"}))
    (tmp_path / "config.yaml").write_text("checkpoint: {path: /x}\n")
    train = read_json(run(monkeypatch, tmp_path))
    assert train.pop("self_sha256")
    assert {"respo", "code", "python"} <= train.pop("versions").keys()
    assert train == {
        "update": 0,
        "config_sha256": sha256_of(tmp_path / "config.yaml"),
        "initial_sha256": "w",
        "checkpoints": {"0": "w"},
    }


@pytest.mark.parametrize("content", ["[]", "{}", '{"weights_sha256": 1}'])
def test_no_hash_of_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    initial = tmp_path / "initial.json"
    initial.write_text(content)
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, tmp_path)
    assert str(stopped.value) == (
        f"error: {initial}: weights_sha256: is missing or no text; make the weights anew: "
        f"snakemake --forcerun {initial}"
    )


@pytest.mark.parametrize("missing", ["initial.json", "config.yaml"])
def test_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name in {"initial.json", "config.yaml"} - {missing}:
        (tmp_path / name).write_text('{"weights_sha256": "w"}')
    with pytest.raises(SystemExit, match=f"{missing}: no such file"):
        run(monkeypatch, tmp_path)
    assert not (tmp_path / "run").exists()
