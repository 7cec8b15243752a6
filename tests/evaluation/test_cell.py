import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from respo.evaluation.cell import main
from respo.files import sha256_of, write_parquet

PROVENANCE = {
    "verifier": {"name": "strict_box", "version": "1"},
    "generations_sha256": "g",
    "generations": {"checkpoint_sha256": "c"},
}

# Problem b: 1 of 2 correct, problem a: 0 of 2.
ROWS = [
    {"problem_id": p, "sample": s, "correct": c, "status": t, "response_tokens": n, "truncated": x}
    for p, s, c, t, n, x in [
        ("b", 0, True, "ok", 10, False),
        ("b", 1, False, "timeout", 20, False),
        ("a", 0, False, "unparsed", 30, True),
        ("a", 1, False, "failed", 40, True),
    ]
]

ADDRESS = {
    "study": "tiny",
    "model": "qwen3-1.7b",
    "method": "respo",
    "staleness": 8,
    "seed": 1,
    "update": 96,
    "benchmark": "chain-easy",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("model: x\n")
    (tmp_path / "train.json").write_text(json.dumps({"checkpoints": {"96": "w", "48": "v"}}))
    return tmp_path


def arguments() -> list[str]:
    return [
        *("--scores", "scores.parquet", "--run-config", "config.yaml", "--train", "train.json"),
        *("--out", "cell.json"),
        *(text for name, value in ADDRESS.items() for text in (f"--{name}", str(value))),
    ]


def make(monkeypatch: pytest.MonkeyPatch, rows: list[dict] = ROWS) -> dict:
    write_parquet(Path("scores.parquet"), pa.Table.from_pylist(rows), PROVENANCE)
    monkeypatch.setattr(sys, "argv", ["cell", *arguments()])
    main()
    return json.loads(Path("cell.json").read_text())


def test_cell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = make(monkeypatch)
    made_from = cell.pop("made_from")
    # Problem means 1/2 and 0: mean 1/4, standard error sqrt(1/16 / 2).
    assert cell.pop("standard_error") == pytest.approx(0.1768, rel=0.03)
    assert cell == {
        **ADDRESS,
        "samples": 2,
        "problems": [
            {"id": "b", "correct": 1, "samples": 2},
            {"id": "a", "correct": 0, "samples": 2},
        ],
        "pass_at_1": 0.25,
        "responses": 4,
        "unparsed": 1,
        "timed_out": 1,
        "failed": 1,
        "truncated": 2,
        "mean_response_tokens": 25.0,
    }
    assert made_from["scores_sha256"] == sha256_of(folder / "scores.parquet")
    assert made_from["run_config_sha256"] == sha256_of(folder / "config.yaml")
    assert made_from["checkpoint_sha256"] == "w"
    assert made_from["verifier"] == PROVENANCE["verifier"]
    assert made_from["scores"] == PROVENANCE
    assert {"respo", "code", "python", "numpy"} <= made_from["environment"].keys()


def test_checkpoint_hash_is_optional(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("{}", '{"checkpoints": {"48": "v"}}'):
        (folder / "train.json").write_text(text)
        assert make(monkeypatch)["made_from"]["checkpoint_sha256"] is None


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS[:3], "scores.parquet: problem 'a' has 1 samples, but problem 'b' has 2"),
        (ROWS + ROWS[:1], "scores.parquet: sample 0 of problem 'b' stands there twice"),
        ([{**row, "truncated": None} for row in ROWS], "'truncated', without gaps"),
        ([{"problem_id": "a"}], "scores.parquet: column 'sample' is missing"),
    ],
)
def test_bad_scores(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rows: list[dict], message: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        make(monkeypatch, rows)
    assert message in str(caught.value.code)
    assert not Path("cell.json").exists()


@pytest.mark.parametrize("name", ["config.yaml", "train.json"])
def test_missing_file(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(SystemExit) as caught:
        make(monkeypatch)
    assert f"{name}: no such file" in str(caught.value.code)


def test_missing_scores(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["cell", *arguments()])
    with pytest.raises(SystemExit) as caught:
        main()
    assert "scores.parquet: No such file" in str(caught.value.code)


def test_imports_nothing_heavy() -> None:
    code = (
        "import sys, respo.evaluation.cell;"
        "print({'torch', 'sympy', 'math_verify', 'scipy', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
