import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from respo.files import sha256_of, write_json, write_text
from respo.parquet import write_parquet
from respo.times import settle_times

RUN = "m/grpo/N2/seed1"
CELL = f"{RUN}/eval/4/easy"
ROWS = pa.table({"id": ["1"]})
# Each is made from those before it, or some of them.
ORDER = [
    "data/train/chain.yaml",
    "data/held_out/easy.yaml",
    "data/train/chain.parquet",
    "data/held_out/easy.parquet",
    "initial/m/config.yaml",
    "initial/m/initial.json",
    f"{RUN}/config.yaml",
    f"{RUN}/metrics.parquet",
    f"{RUN}/branches.parquet",
    f"{RUN}/train.json",
    f"{CELL}/generations.parquet",
    f"{CELL}/scores.parquet",
    f"{CELL}/cell.json",
]
MADE = [name for name in ORDER if not name.endswith(".yaml")]
INPUTS = {
    "data/train/chain.parquet": ["data/train/chain.yaml"],
    "data/held_out/easy.parquet": ["data/held_out/easy.yaml"],
    "initial/m/initial.json": ["initial/m/config.yaml", "data/train/chain.parquet"],
    f"{RUN}/train.json": [
        f"{RUN}/config.yaml",
        "initial/m/initial.json",
        "data/train/chain.parquet",
    ],
    f"{CELL}/generations.parquet": [f"{RUN}/train.json", "data/held_out/easy.parquet"],
    f"{CELL}/scores.parquet": [f"{CELL}/generations.parquet"],
    f"{CELL}/cell.json": [f"{CELL}/scores.parquet", f"{RUN}/train.json", f"{RUN}/config.yaml"],
}
TSV = f"benchmarks/eval/{CELL.replace('/eval', '')}.score.tsv"


@pytest.fixture
def study(tmp_path):
    """All files but tables, each with the hashes of what it is made from; times are reversed."""
    for name in ORDER:
        if name.endswith(".yaml"):
            write_text(tmp_path / name, f"name: {name}\n")

    def sha256(name):
        return sha256_of(tmp_path / name)

    for name in ("data/train/chain", "data/held_out/easy"):
        made_from = {"config_sha256": sha256(f"{name}.yaml")}
        write_parquet(tmp_path / f"{name}.parquet", ROWS, made_from)
    initial = {
        "config_sha256": sha256("initial/m/config.yaml"),
        "data_sha256": sha256("data/train/chain.parquet"),
        "weights_sha256": "w0",
    }
    write_json(tmp_path / "initial/m/initial.json", initial)
    identity = {
        "config_sha256": sha256(f"{RUN}/config.yaml"),
        "data_sha256": sha256("data/train/chain.parquet"),
        "initial_sha256": "w0",
    }
    for name in ("metrics", "branches"):
        write_parquet(tmp_path / RUN / f"{name}.parquet", ROWS, identity)
    write_json(tmp_path / RUN / "train.json", {**identity, "checkpoints": {"4": "w4"}})
    generations = {
        "checkpoint_sha256": "w4",
        "benchmark_sha256": sha256("data/held_out/easy.parquet"),
    }
    write_parquet(tmp_path / CELL / "generations.parquet", ROWS, generations)
    scores = {"generations_sha256": sha256(f"{CELL}/generations.parquet")}
    write_parquet(tmp_path / CELL / "scores.parquet", ROWS, scores)
    cell = {
        "scores_sha256": sha256(f"{CELL}/scores.parquet"),
        "run_config_sha256": sha256(f"{RUN}/config.yaml"),
        "checkpoint_sha256": "w4",
    }
    write_json(tmp_path / CELL / "cell.json", {"made_from": cell})
    write_text(tmp_path / TSV, "s\n1\n")
    for place, name in enumerate([*ORDER, TSV]):
        set_time(tmp_path / name, 1e9 - place)
    return tmp_path


def set_time(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds))


def seconds(study, name):
    return (study / name).stat().st_mtime


def in_order(study):
    return all(
        seconds(study, name) <= seconds(study, made)
        for made, inputs in INPUTS.items()
        for name in inputs
    )


def test_what_its_hashes_vouch_for_becomes_as_new_as_what_it_is_made_from(study):
    settled = settle_times(study)
    assert {str(path.relative_to(study)) for path in settled} == set(MADE)
    assert in_order(study)
    # Snakemake counts the file of a job's duration among what the job makes.
    assert seconds(study, TSV) == seconds(study, f"{CELL}/scores.parquet")
    assert settle_times(study) == []


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ("data/train/chain.yaml", [name for name in MADE if "chain.parquet" not in name]),
        ("initial/m/config.yaml", [name for name in MADE if "initial.json" not in name]),
        (f"{RUN}/config.yaml", [*MADE[:3], *MADE[6:8]]),
        ("data/held_out/easy.parquet", [*MADE[:1], *MADE[2:6], *MADE[7:]]),
    ],
)
def test_what_is_made_from_something_else_stays_old(study, changed, kept):
    # The bytes differ, the time is what it was.
    before = seconds(study, changed)
    if changed.endswith(".parquet"):
        write_parquet(study / changed, pa.table({"id": ["2"]}), {})
    else:
        write_text(study / changed, "changed: true\n")
    set_time(study / changed, before)
    if changed.endswith("easy.parquet"):
        kept = [name for name in kept if name != changed]
    settled = {str(path.relative_to(study)) for path in settle_times(study)}
    assert settled == set(kept)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"made_from": 1}'])
def test_a_damaged_record_vouches_for_nothing(study, text):
    for name in ("initial/m/initial.json", f"{RUN}/train.json", f"{CELL}/cell.json"):
        before = seconds(study, name)
        (study / name).write_text(text)
        set_time(study / name, before)
    settled = {str(path.relative_to(study)) for path in settle_times(study)}
    assert settled == {*MADE[:2], f"{CELL}/scores.parquet"}


def test_nothing_is_of_the_future(study):
    """The clock was set back: Snakemake refuses what a job makes from a file of the future."""
    future = time.time() + 1e6
    for name in ORDER[:4]:
        set_time(study / name, future)
    settle_times(study)
    assert all(seconds(study, name) <= time.time() for name in ORDER)
    assert in_order(study)


def test_a_baseline_has_the_configuration_of_its_weights(study):
    train = study / "m/baseline/N0/seed0/train.json"
    config_sha256 = sha256_of(study / "initial/m/config.yaml")
    record = {"config_sha256": config_sha256, "initial_sha256": "w0", "checkpoints": {"0": "w0"}}
    write_json(train, record)
    set_time(train, 1.0)
    assert train in settle_times(study)


def test_a_folder_that_is_not_there(tmp_path):
    assert settle_times(tmp_path / "none") == []
