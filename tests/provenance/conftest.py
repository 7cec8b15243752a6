"""A results folder with one run and one cell, as the stages write them, of the study `tiny`."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from respo.config import Run, load_study
from respo.environment import environment
from respo.evaluation.cell import summarize
from respo.files import sha256_of, write_json, write_record, write_text
from respo.objectives import code_hash
from respo.parquet import write_parquet
from respo.provenance import sources
from respo.provenance.environments import run_made_from
from respo.statistics.scores import read_scores
from respo.weight_files import policy_hash

CONFIG = Path(__file__).parents[2] / "config"
UPDATE = 128
VERSIONS = {"respo": "0.1.0", "code": "abc", "python": "3.11.7", "processor": "p", "torch": "2.13"}


class Made:
    """The folder and its one run; `again` writes what comes after a changed file."""

    def __init__(self, root):
        self.path = root / "results" / "tiny"
        self.study = load_study(CONFIG, "tiny")
        self.run = Run("qwen3-tiny", "respo", 32, 1)
        self.folder = self.run.folder(self.path)
        self.cell = self.run.cell(self.path, UPDATE, "chain-hard")
        texts = self.study.config_texts(self.path, code_hash)
        for name in (
            "study.yaml",
            "data/train/chain.yaml",
            "data/held_out/chain-hard.yaml",
            "initial/qwen3-tiny/config.yaml",
            f"{self.run.name}/config.yaml",
        ):
            write_text(self.path / name, texts[str(self.path / name)]())
        self.training_set = self._rows("train/chain", {})
        self.benchmark = self._rows("held_out/chain-hard", {"version": 1})
        self.initial_weights = self.path / "initial/qwen3-tiny/weights"
        self.weights(self.initial_weights, b"first")
        self.initial()
        self.weights(self.folder / f"checkpoints/{UPDATE}", b"trained")
        self.train()
        self.evaluate()

    def _rows(self, name, made_from):
        path = self.path / f"data/{name}.parquet"
        table = pa.table({"id": ["a", "b"], "prompt": ["1=", "2="], "answer": ["1", "2"]})
        config = {"config_sha256": sha256_of(path.with_suffix(".yaml"))}
        write_parquet(path, table, config | made_from)
        return path

    @staticmethod
    def weights(folder, content):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.safetensors").write_bytes(content)

    def initial(self, **changes):
        folder = self.path / "initial/qwen3-tiny"
        record = {
            "config_sha256": sha256_of(folder / "config.yaml"),
            "data_sha256": sha256_of(self.training_set),
            "weights_sha256": policy_hash(folder / "weights"),
            "seconds": 44.0,
            "versions": VERSIONS,
        }
        write_json(folder / "initial.json", record | changes)

    def train(self, starts=((0, {}),), **changes):
        """Write `train.json`; starts are pairs of an update and of what is not `VERSIONS`."""
        folder = self.path / "initial/qwen3-tiny/weights"
        identity = {
            "config_sha256": sha256_of(self.folder / "config.yaml"),
            "data_sha256": sha256_of(self.training_set),
            "initial_sha256": policy_hash(folder),
        }
        record = {
            "update": UPDATE,
            **identity,
            "checkpoints": {str(UPDATE): policy_hash(self.folder / f"checkpoints/{UPDATE}")},
            "outputs": {},
            "seconds": 90.0,
            "device": "cpu",
            "versions": VERSIONS,
            "starts": [
                {
                    "update": u,
                    "at": f"2026-01-01T0{i}:00:00+00:00",
                    "device": "cpu",
                    "versions": VERSIONS | other,
                }
                for i, (u, other) in enumerate(starts)
            ],
            "ended": "2026-01-02T00:00:00+00:00",
        }
        for name, columns in {
            "metrics.parquet": {"update": [1], "log_ratio_mean": [0.0]},
            "branches.parquet": {"update": [1], "sign": ["pos"], "bin": [0]},
        }.items():
            write_parquet(self.folder / name, pa.table(columns), identity)
            record["outputs"][name] = sha256_of(self.folder / name)
        write_json(self.folder / "train.json", record | changes)

    def evaluate(self, **changes):
        """Write generations, scores and cell; `changes` are of the cell's environment."""
        train = json.loads((self.folder / "train.json").read_text())
        generations = {
            "checkpoint_sha256": train["checkpoints"][str(UPDATE)],
            "benchmark_sha256": sha256_of(self.benchmark),
            "engine": "local",
            "device": "cpu",
            "sampling": {"samples": 1, "temperature": 1.0, "top_p": 0.7, "seed": 0},
            "environment": VERSIONS,
        }
        responses = {"problem_id": ["a", "b"], "sample": [0, 0], "response": ["1", "1"]}
        lengths = {"response_tokens": [1, 1], "truncated": [False, False]}
        path = self.cell.with_name("generations.parquet")
        write_parquet(path, pa.table(responses | lengths), generations)
        scores = {
            "generations_sha256": sha256_of(path),
            "generations": generations,
            "verifier": {"name": "strict_box", "version": "0.1.0"},
            "environment": VERSIONS,
        }
        verdicts = {"correct": [True, False], "status": ["ok", "ok"], "extracted": ["1", "1"]}
        path = self.cell.with_name("scores.parquet")
        columns = {k: v for k, v in responses.items() if k != "response"} | verdicts | lengths
        write_parquet(path, pa.table(columns), scores)
        run = self.run
        address = {
            "study": "tiny",
            "model": run.model,
            "method": run.method,
            "staleness": run.staleness,
            "seed": run.seed,
            "update": UPDATE,
            "benchmark": "chain-hard",
        }
        made_from = {
            "scores_sha256": sha256_of(path),
            "run_config_sha256": sha256_of(self.folder / "config.yaml"),
            "checkpoint_sha256": train["checkpoints"][str(UPDATE)],
            "verifier": scores["verifier"],
            "environment": VERSIONS | {"numpy": "2"} | changes,
            "run": run_made_from(train),
            "scores": scores,
        }
        numbers = summarize(read_scores(path))
        write_record(self.cell, {**address, **numbers, "made_from": made_from})

    def time(self, job, seconds):
        """Note the duration of a job as snakemake does."""
        write_text(self.path / f"benchmarks/{job}.tsv", f"s\th:m:s\n{seconds}\t0:00:01\n")


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path)


@pytest.fixture
def here():
    return environment()


@pytest.fixture
def table(made):
    """A table of the cell, as `respo.reporting.table` records it."""
    path = made.path / "tables/respo/table1.md"
    path.parent.mkdir(parents=True)
    names = ["study.yaml", f"{made.run.name}/eval/128/chain-hard/cell.json"]
    files = {name: sha256_of(made.path / name) for name in names}
    digits = sources.digest(files)
    path.write_text(f"| a |\n<!-- made from results {digits} -->\n")
    path.with_suffix(".csv").write_text(f"a,made_from\n1,{digits}\n")
    both = [path, path.with_suffix(".csv")]
    sources.write_sources(made.path, "tiny", both, digits, files, "numpy")
    return path
