"""A small results folder, written by hand as the stages before the reporting would write it."""

from pathlib import Path

import pyarrow as pa
import pytest

from respo.config import Run, load_study
from respo.config.schema import Chain, ChainBenchmark, LocalModel, Method, Study
from respo.config.study import ResolvedStudy
from respo.config.yaml import canonical
from respo.files import sha256_of, write_json, write_text
from respo.parquet import write_parquet
from respo.reporting.results import Results

UPDATES = 32
CONFIG = Path(__file__).parents[2] / "config"


def _study(**changes):
    return Study(
        **{
            "title": "A study",
            "methods": ["grpo", "respo"],
            "models": ["small"],
            "staleness": [8],
            "seeds": [1],
            "updates": UPDATES,
            "mini_batch": 4,
            "rollouts_per_prompt": 4,
            "temperature": 1.0,
            "loss_aggregation": "token-mean",
            "optimizer": {
                "learning_rate": 1e-4,
                "warmup_updates": 0,
                "betas": [0.9, 0.999],
                "weight_decay": 0.0,
                "gradient_clip": 1.0,
            },
            "checkpoints": [UPDATES],
            "train_data": "chain",
            "benchmarks": ["easy", "hard"],
            "evaluation": {"updates": [UPDATES], "temperature": 1.0, "top_p": 0.7, "seed": 0},
            "tables": ["respo/table1"],
            "figures": ["respo/fig1", "respo/fig3"],
            **changes,
        }
    )


def _resolved(study):
    method_labels = {"grpo": "GRPO", "gspo": "GSPO", "vespo": "VESPO", "respo": "ReSPO"}
    names = dict.fromkeys([*study.methods, *(m for e in study.extra_runs for m in e.methods)])
    chain = Chain(source="chain", operators=[1, 2], rows=4, seed=0)
    model = {
        "label": "Small & dense",
        "backend": "local",
        "architecture": {
            "model_type": "qwen3",
            "hidden_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "head_dim": 8,
            "intermediate_size": 8,
        },
        "warm_start": {
            "data": "chain",
            "steps": 1,
            "batch": 1,
            "learning_rate": 1e-3,
            "direct": 0.5,
            "corrupted": 0.1,
            "seed": 0,
        },
        "max_prompt_tokens": 24,
        "max_response_tokens": 64,
        "resources": {"memory_mb": 1, "minutes": 1},
    }
    return ResolvedStudy(
        name="tried",
        study=study,
        methods={
            name: Method(
                label=method_labels[name], objective=name, parameters={}, source="-", deviations=[]
            )
            for name in names
        },
        models={name: LocalModel(**model) for name in study.models},
        datasets={"chain": chain},
        benchmarks={
            name: ChainBenchmark(
                **chain.model_dump(),
                label=name.title(),
                version=1,
                samples=2,
                verifier="strict_box",
            )
            for name in study.benchmarks
        },
    )


class Folder:
    """Writes cells and metrics below a results folder."""

    def __init__(self, path, **study):
        self.path = path
        self.study = _resolved(_study(**study))
        write_text(path / "study.yaml", canonical(self.study.model_dump(mode="json")))

    @property
    def results(self):
        return Results(self.path)

    def run(self, method, staleness=8, seed=1):
        return next(
            run
            for run in [*self.study.runs(), *self.study.evaluated()]
            if (run.method, run.staleness, run.seed) == (method, staleness, seed)
        )

    def cell(self, benchmark, correct, method, staleness=8, seed=1, ids=None, changes=None):
        """Write a cell of 2 samples per problem; `correct` holds c of each problem."""
        run = self.run(method, staleness, seed)
        update = self.study.checkpoints(run)[-1]
        path = run.cell(self.path, update, benchmark)
        ids = ids or [f"{benchmark}-{index}" for index in range(len(correct))]
        value = {
            "study": "tried",
            "model": "small",
            "method": method,
            "staleness": staleness,
            "seed": seed,
            "update": update,
            "benchmark": benchmark,
            "samples": 2,
            "problems": [
                {"id": id_, "correct": c, "samples": 2} for id_, c in zip(ids, correct, strict=True)
            ],
            "pass_at_1": sum(correct) / (2 * len(correct)),
            "standard_error": 0.1,
            "responses": 2 * len(correct),
            "unparsed": 1,
            "timed_out": 0,
            "failed": 0,
            "truncated": 1,
            "mean_response_tokens": 10.0,
            "made_from": {"verifier": "strict_box"},
        }
        write_json(path, {**value, **(changes or {})})
        return path

    def metrics(self, score, log_ratio_mean, method, staleness=8, seed=1, first=1, **more):
        """Write the metrics of a run, one value per update; `more` are further columns."""
        run = self.run(method, staleness, seed)
        path = run.folder(self.path) / "metrics.parquet"
        config = path.with_name("config.yaml")
        write_text(config, f"# {run.name}\n")
        update = pa.array(range(first, first + len(score)), pa.int32())
        columns = {"update": update, "score": score, "log_ratio_mean": log_ratio_mean, **more}
        write_parquet(path, pa.table(columns), {"config_sha256": sha256_of(config)})
        return path

    def branches(self, sums, method, staleness=8, seed=1):
        """Write the sums of a run by bin of log W.

        `sums` maps (rollout batch, bin) to (responses, coefficient mass, tokens), those of positive
        advantage; all other bins are empty, and negative ones hold what must not be counted.
        """
        run = self.run(method, staleness, seed)
        path = run.folder(self.path) / "branches.parquet"
        config = path.with_name("config.yaml")
        write_text(config, f"# {run.name}\n")
        rows = [
            (batch, sign, b, *(sums.get((batch, b), (0, 0.0, 0)) if sign == "pos" else (9, 9.0, 9)))
            for batch in sorted({batch for batch, _ in sums})
            for sign in ("pos", "neg")
            for b in range(10)
        ]
        names = ("rollout_batch", "sign", "bin", "responses", "coefficient_mass", "tokens")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        write_parquet(path, pa.table(columns), {"config_sha256": sha256_of(config)})
        return path

    def scores(self, benchmark, responses, method, staleness=8, seed=1):
        """Write the verdicts of a cell: (problem, correct, tokens) of each response."""
        run = self.run(method, staleness, seed)
        cell = run.cell(self.path, self.study.checkpoints(run)[-1], benchmark)
        path = cell.with_name("scores.parquet")
        names = ("problem_id", "correct", "response_tokens")
        columns = dict(zip(names, map(list, zip(*responses, strict=True)), strict=True))
        write_parquet(path, pa.table(columns), {})
        return path


class Paper:
    """Writes cells of a study of `config/studies`, of two problems per benchmark."""

    def __init__(self, path, name):
        self.path = path / name
        self.study = load_study(CONFIG, name)
        text = canonical(self.study.model_dump(mode="json"))
        write_text(self.path / "study.yaml", text)

    @property
    def results(self):
        return Results(self.path)

    def cells(self, method, model, staleness, correct, benchmarks=None, seed=1):
        """Write a cell per benchmark: `correct` holds c of each problem, of K samples."""
        run = Run(model, method, staleness, seed)
        for benchmark in benchmarks or self.study.benchmarks:
            k = self.study.samples(benchmark)
            update = self.study.checkpoints(run)[-1]
            value = {
                "study": self.study.name,
                "model": model,
                "method": method,
                "staleness": staleness,
                "seed": seed,
                "update": update,
                "benchmark": benchmark,
                "problems": [
                    {"id": f"{i}", "correct": c, "samples": k} for i, c in enumerate(correct)
                ],
                "pass_at_1": sum(correct) / (k * len(correct)),
                "responses": k * len(correct),
                **dict.fromkeys(("unparsed", "timed_out", "failed", "truncated"), 0),
                "mean_response_tokens": 10.0,
            }
            write_json(run.cell(self.path, update, benchmark), value)


@pytest.fixture
def paper(tmp_path: Path):
    """A function that makes the results folder of a study of the project, by name."""
    return lambda name: Paper(tmp_path, name)


@pytest.fixture
def folder(tmp_path: Path):
    """A function that makes a results folder; keyword arguments change the study."""
    return lambda **study: Folder(tmp_path / "tried", **study)
