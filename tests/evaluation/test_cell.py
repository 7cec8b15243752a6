import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from respo.evaluation.cell import main
from respo.files import read_json, sha256_of
from respo.parquet import write_parquet

PROVENANCE = {
    "verifier": {"name": "strict_box", "version": "1"},
    "generations_sha256": "g",
    "generations": {"checkpoint_sha256": "w"},
}

# Problem b: 1 of 2 correct, problem a: 0 of 2.
ROWS = [
    {
        **{"problem_id": p, "sample": s, "correct": c, "status": t, "boxed": b},
        **{"response_tokens": n, "truncated": x},
    }
    for p, s, c, t, b, n, x in [
        ("b", 0, True, "ok", "7", 10, False),
        ("b", 1, False, "timeout", "8", 20, False),
        ("a", 0, False, "unparsed", None, 30, True),
        ("a", 1, False, "failed", "9", 40, True),
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


CONFIG = "staleness: 8\nseed: 1\ntraining:\n  updates: 128\n"


def train(config: str = CONFIG, **changes: object) -> str:
    """Text of the `train.json` of a run with this configuration."""
    config_sha256 = hashlib.sha256(config.encode()).hexdigest()
    checkpoints = {"96": "w", "128": "v"}
    complete = {"update": 128, "config_sha256": config_sha256, "checkpoints": checkpoints}
    return json.dumps(complete | changes)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "train.json").write_text(train())
    return tmp_path


def arguments(address: dict[str, object] = ADDRESS) -> list[str]:
    return [
        *("--scores", "scores.parquet", "--run-config", "config.yaml", "--train", "train.json"),
        *("--out", "cell.json"),
        *(text for name, value in address.items() for text in (f"--{name}", str(value))),
    ]


def make(
    monkeypatch: pytest.MonkeyPatch,
    rows: list[dict] = ROWS,
    provenance: dict = PROVENANCE,
    **address: object,
) -> dict:
    write_parquet(Path("scores.parquet"), pa.Table.from_pylist(rows), provenance)
    monkeypatch.setattr(sys, "argv", ["cell", *arguments(ADDRESS | address)])
    main()
    cell = read_json(Path("cell.json"))
    assert cell.pop("self_sha256")
    return cell


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
        "majority": 0.5,
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


def start(update: int, **changes: str) -> dict[str, object]:
    versions = {"torch": "2.13", "processor": "p"} | changes
    return {"update": update, "at": f"2026-01-0{update + 1}", "device": "cpu", "versions": versions}


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        # Continued twice, on the same machine: nothing that the result could tell.
        ([start(0), start(2), start(5)], [{}]),
        ([start(0), start(2, torch="2.14"), start(5)], [{}, {"torch": "2.14"}]),
        # On another machine, for nothing: the next start went on from the same state.
        ([start(0), start(2, processor="q"), start(2)], [{}]),
        ([start(0), start(2), start(5, processor="q")], [{}, {"processor": "q"}]),
    ],
)
def test_what_the_run_was_made_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch, starts: list, expected: list
) -> None:
    record = train(starts=starts, data_sha256="d", initial_sha256="i")
    (folder / "train.json").write_text(record)
    base = {"torch": "2.13", "processor": "p", "device": "cpu"}
    assert make(monkeypatch)["made_from"]["run"] == {
        "data_sha256": "d",
        "initial_sha256": "i",
        "environments": [base | changes for changes in expected],
    }


def test_a_run_of_an_older_version_tells_the_last_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "train.json").write_text(train(versions={"torch": "2.12"}, device="cpu"))
    run = make(monkeypatch)["made_from"]["run"]
    assert run == {"environments": [{"torch": "2.12", "device": "cpu"}]}


def test_programs_have_no_majority(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{name: row[name] for name in row if name != "boxed"} for row in ROWS]
    code = PROVENANCE | {"verifier": {"name": "code", "version": "1"}}
    assert make(monkeypatch, rows=rows, provenance=code)["majority"] is None
    # In all other files the column is there, or a flipped bit has changed its name.
    with pytest.raises(SystemExit, match=r"scores\.parquet: column 'boxed' is missing; delete"):
        make(monkeypatch, rows=rows)


@pytest.mark.parametrize("provenance", [{}, {"generations": {}}, {"generations": "?"}])
def test_scores_may_not_say_whose_they_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch, provenance: dict
) -> None:
    assert make(monkeypatch, provenance=provenance)["made_from"]["checkpoint_sha256"] == "w"


def test_scores_of_another_checkpoint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as caught:
        make(monkeypatch, provenance={"generations": {"checkpoint_sha256": "v"}})
    assert str(caught.value.code) == (
        "error: scores.parquet: checkpoint_sha256: the responses are not of the checkpoint that "
        "train.json names for update 96; delete the file and its generations, and start again"
    )
    assert not Path("cell.json").exists()


# `config.yaml` is that of the weights, which says nothing of a run.
WEIGHTS = "checkpoint:\n  path: /weights\n"
BASELINE = {"method": "baseline", "staleness": 0, "seed": 0, "update": 0}


def test_baseline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "config.yaml").write_text(WEIGHTS)
    (folder / "train.json").write_text(train(WEIGHTS, update=0, checkpoints={"0": "w"}))
    cell = make(monkeypatch, **BASELINE)
    assert {key: cell[key] for key in BASELINE} == BASELINE
    assert cell["pass_at_1"] == 0.25
    assert cell["made_from"]["run_config_sha256"] == sha256_of(folder / "config.yaml")
    assert cell["made_from"]["checkpoint_sha256"] == "w"


@pytest.mark.parametrize(
    ("record", "address", "message"),
    [
        (train(WEIGHTS), {}, "the training ended at update 128 of 0"),
        (train(update=0, checkpoints={"0": "w"}), {}, "config_sha256: is not that of"),
        (
            train(WEIGHTS, update=0, checkpoints={"0": "w"}),
            {"staleness": 8},
            "staleness: is 0, but",
        ),
        (train(WEIGHTS, update=0, checkpoints={"0": "w"}), {"seed": 1}, "seed: is 0, but --seed"),
        (train(WEIGHTS, update=0, checkpoints={"0": "v"}), {}, "not of the checkpoint that"),
    ],
)
def test_what_is_no_baseline(
    folder: Path, monkeypatch: pytest.MonkeyPatch, record: str, address: dict, message: str
) -> None:
    (folder / "config.yaml").write_text(WEIGHTS)
    (folder / "train.json").write_text(record)
    with pytest.raises(SystemExit) as caught:
        make(monkeypatch, **BASELINE | address)
    assert message in str(caught.value.code)
    assert not Path("cell.json").exists()


ANEW = "train the run anew: snakemake --forcerun train.json"


@pytest.mark.parametrize(
    ("config", "record", "message"),
    [
        (CONFIG + "\n", train(), "train.json: config_sha256: is not that of config.yaml"),
        (CONFIG, train(config_sha256=None), "train.json: config_sha256: is not that of config"),
        (CONFIG, "[]", "train.json: checkpoints: is missing"),
        (CONFIG, train(checkpoints={"128": "v"}), "no hash for update 96; there are 128"),
        (CONFIG, train(update=64), "train.json: update: the training ended at update 64 of 128"),
        (CONFIG, train(update=None), "the training ended at update None of 128"),
    ],
)
def test_a_run_that_is_not_what_it_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, config: str, record: str, message: str
) -> None:
    (folder / "config.yaml").write_text(config)
    (folder / "train.json").write_text(record)
    with pytest.raises(SystemExit) as caught:
        make(monkeypatch)
    assert message in str(caught.value.code)
    assert str(caught.value.code).endswith(ANEW)
    assert not Path("cell.json").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (CONFIG.replace("seed: 1", "seed: 2"), "config.yaml: seed: is 2, but --seed is 1; give"),
        (CONFIG.replace("staleness: 8", ""), "staleness: is None, but --staleness is 8; give"),
        ("staleness: 8\nseed: 1\n", "update 128 of None, which config.yaml asks for"),
        ("staleness: 8\nseed: 1\ntraining: x\n", "update 128 of None, which config.yaml asks for"),
        ("- 1", "config.yaml: holds no configuration of a run; delete it and start again"),
        ("a: [", "config.yaml: holds no configuration of a run"),
        ("[" * 5000, "config.yaml: holds no configuration of a run"),
        ("a: 2020-99-99", "config.yaml: holds no configuration of a run"),
    ],
)
def test_a_configuration_of_something_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, config: str, message: str
) -> None:
    (folder / "config.yaml").write_text(config)
    (folder / "train.json").write_text(train(config))
    with pytest.raises(SystemExit) as caught:
        make(monkeypatch)
    assert message in str(caught.value.code)
    assert "\n" not in str(caught.value.code)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS[:3], "scores.parquet: problem 'a' has 1 samples, but problem 'b' has 2"),
        (ROWS + ROWS[:1], "scores.parquet: row 5: sample 0 of problem 'b' stands there twice"),
        ([{**row, "truncated": None} for row in ROWS], "'truncated', without gaps"),
        ([{**row, "sample": -1} for row in ROWS], "scores.parquet: row 1: column 'sample' must"),
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


def test_nothing_heavy_is_imported(folder: Path) -> None:
    write_parquet(Path("scores.parquet"), pa.Table.from_pylist(ROWS), PROVENANCE)
    code = (
        "import sys; from respo.evaluation.cell import main; main();"
        "print({'torch', 'sympy', 'math_verify', 'scipy', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments()], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
