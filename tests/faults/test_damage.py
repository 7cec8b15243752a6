"""A damaged file is named, with the remedy, by whatever reads it; no wrong number is made of it."""

import importlib
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

CELL = "mini/grpo/N2/seed1/eval/2/easy"
FOLDER = "mini/grpo/N2/seed1"
TRAIN = ["training.local.__main__", "--config", f"{FOLDER}/config.yaml"]
TRAIN += ["--initial", "initial/mini/weights", "--data", "data/train/chain.parquet"]
GENERATE = ["evaluation.generate", "--checkpoint", f"{FOLDER}/checkpoints/2"]
GENERATE += ["--train", f"{FOLDER}/train.json", "--benchmark", "data/held_out/easy.parquet"]
GENERATE += ["--samples", "2", "--temperature", "1", "--top-p", "0.7"]
GENERATE += ["--max-response-tokens", "24", "--seed", "0", "--out", f"{CELL}/generations.parquet"]
SCORE = ["evaluation.score", "--generations", f"{CELL}/generations.parquet"]
SCORE += ["--verifier", "strict_box", "--out", f"{CELL}/scores.parquet"]
SUM = ["evaluation.cell", "--scores", f"{CELL}/scores.parquet", "--train", f"{FOLDER}/train.json"]
SUM += ["--run-config", f"{FOLDER}/config.yaml", "--study", "mini", "--model", "mini"]
SUM += ["--method", "grpo", "--staleness", "2", "--seed", "1", "--update", "2"]
SUM += ["--benchmark", "easy", "--out", f"{CELL}/cell.json"]
TABLE = ["reporting.table", "respo/table1", "--study", "."]
FIGURE = ["reporting.figure", "respo/fig3", "--study", "."]
PAGE = ["reporting.page.__main__", "--study", "."]
READERS = [
    (TRAIN, "data/train/chain.parquet"),
    (TRAIN, "initial/mini/weights/model.safetensors"),
    (TRAIN, "initial/mini/weights/tokenizer.json"),
    (GENERATE, f"{FOLDER}/checkpoints/2/model.safetensors"),
    (GENERATE, f"{FOLDER}/checkpoints/2/config.json"),
    (GENERATE, f"{FOLDER}/checkpoints/2/tokenizer.json"),
    (GENERATE, f"{FOLDER}/train.json"),
    (GENERATE, "data/held_out/easy.parquet"),
    (SCORE, f"{CELL}/generations.parquet"),
    (SUM, f"{CELL}/scores.parquet"),
    (SUM, f"{FOLDER}/train.json"),
    (SUM, f"{FOLDER}/config.yaml"),
    (TABLE, f"{CELL}/cell.json"),
    (FIGURE, f"{FOLDER}/metrics.parquet"),
    (FIGURE, f"{CELL}/scores.parquet"),
    (PAGE, f"{CELL}/cell.json"),
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


def run(monkeypatch, stage, *arguments) -> None:
    monkeypatch.setattr(sys, "argv", [stage, *arguments])
    importlib.import_module(f"respo.{stage}").main()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("command", "name"), READERS, ids=[f"{command[0]}-{name}" for command, name in READERS]
)
def test_a_damaged_file_is_named_with_the_remedy(study, monkeypatch, command, name, damage):
    path = study / name
    path.write_bytes(DAMAGES[damage](path))
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, *command)
    message = str(end.value.code)
    assert message.startswith("error: ")
    # Of a checkpoint or initial weights, the folder: it is whole or is made anew as a whole.
    named = name if name in message else name.rpartition("/")[0]
    assert named in message
    assert REMEDY.search(message), message


def test_all_is_well_without_damage(study, monkeypatch):
    for command in (TRAIN, GENERATE, SCORE, SUM, TABLE, FIGURE, PAGE):
        run(monkeypatch, *command)


def test_a_damaged_shard_is_sampled_again(study, monkeypatch):
    """What generation keeps for its next start."""
    output = study / CELL / "generations.parquet"
    before = output.read_bytes()
    output.unlink()
    shards = list((study / CELL / ".shards").rglob("*.parquet"))
    for shard in shards:
        shard.write_bytes(flip(shard))
    run(monkeypatch, *GENERATE)
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
