"""A damaged file is named, with the remedy, by whatever reads it; no wrong number is made of it."""

import importlib
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

FOLDER = "mini/grpo/N2/seed1"
CELL = f"{FOLDER}/eval/2/easy"
READERS = [
    ("train", "data/train/chain.parquet"),
    ("train", "initial/mini/weights/model.safetensors"),
    ("train", "initial/mini/weights/tokenizer.json"),
    ("generate", f"{FOLDER}/checkpoints/2/model.safetensors"),
    ("generate", f"{FOLDER}/checkpoints/2/config.json"),
    ("generate", f"{FOLDER}/checkpoints/2/tokenizer.json"),
    ("generate", f"{FOLDER}/train.json"),
    ("generate", "data/held_out/easy.parquet"),
    ("score", f"{CELL}/generations.parquet"),
    ("cell", f"{CELL}/scores.parquet"),
    ("cell", f"{FOLDER}/train.json"),
    ("cell", f"{FOLDER}/config.yaml"),
    ("table", f"{CELL}/cell.json"),
    ("figure", f"{FOLDER}/metrics.parquet"),
    ("figure", f"{CELL}/scores.parquet"),
    ("page", f"{CELL}/cell.json"),
]
REMEDY = re.compile(r"anew|start again|change|delete|Delete", re.ASCII)


def flip(path: Path) -> bytes:
    """Change a bit in the middle; of a Parquet file, in the values of its first column.

    Its footer says many things twice, or of no consequence.
    """
    data, place = path.read_bytes(), path.stat().st_size // 2
    if path.suffix == ".parquet":
        column = pq.read_metadata(path).row_group(0).column(0)
        start = column.dictionary_page_offset or column.data_page_offset
        place = start + column.total_compressed_size - 1
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


DAMAGES = {
    "a bit": flip,
    "cut short": lambda path: path.read_bytes()[: path.stat().st_size // 2],
    "empty": lambda path: b"",
    "zeros": lambda path: bytes(path.stat().st_size),
}


@pytest.fixture
def study(study_copy, monkeypatch):
    """A finished study, in whose folder the stages run."""
    monkeypatch.chdir(study_copy)
    return study_copy


@pytest.fixture
def run(stages, monkeypatch):
    """A function of a stage's name that runs it in this process."""

    def start(name):
        monkeypatch.setattr(sys, "argv", stages[name])
        importlib.import_module(f"respo.{stages[name][0]}").main()

    return start


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("stage", "name"), READERS)
def test_a_damaged_file_is_named_with_the_remedy(study, run, stage, name, damage):
    path = study / name
    path.write_bytes(DAMAGES[damage](path))
    with pytest.raises(SystemExit) as end:
        run(stage)
    message = str(end.value.code)
    assert message.startswith("error: ")
    # Of a checkpoint or initial weights, the folder: it is whole or is made anew as a whole.
    named = name if name in message else name.rpartition("/")[0]
    assert named in message
    assert REMEDY.search(message), message


def test_all_is_well_without_damage(study, stages, run):
    for name in stages:
        run(name)


def test_a_damaged_shard_is_sampled_again(study, run):
    """What generation keeps for its next start."""
    output = study / CELL / "generations.parquet"
    before = output.read_bytes()
    output.unlink()
    shards = list((study / CELL / ".shards").rglob("*.parquet"))
    for shard in shards:
        shard.write_bytes(flip(shard))
    run("generate")
    assert output.read_bytes() == before
    assert shards


@pytest.mark.faults
def test_a_damaged_configuration_is_written_anew(finished, would_run):
    """By the next start; what was made from the right one is kept."""
    names = ["mini/respo/N2/seed1/config.yaml", "study.yaml", "data/train/chain.yaml"]
    paths = [finished / "results/mini" / name for name in names]
    before = [path.read_bytes() for path in paths]
    for path in paths:
        path.write_bytes(flip(path))
    assert would_run(finished) == {}
    assert [path.read_bytes() for path in paths] == before


@pytest.mark.faults
def test_a_damaged_result_stops_what_reads_it_and_is_remade(
    finished, unbroken, snakemake, differences
):
    """With the remedy that the message tells: to delete the file and to start again."""
    scores = finished / "results/mini/mini/respo/N2/seed1/eval/4/easy/scores.parquet"
    cell = scores.with_name("cell.json")
    scores.write_bytes(flip(scores))
    cell.unlink()
    result = snakemake(finished)
    assert result.returncode == 1
    assert "scores.parquet: " in result.stdout
    assert "Delete it and start again" in result.stdout
    scores.unlink()
    assert snakemake(finished).returncode == 0
    assert differences(unbroken, finished) == ""
