"""A finished study of two tiny runs, made by the stages of the pipeline without Snakemake."""

import contextlib
import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from respo.config import load_study
from respo.config.study import ResolvedStudy
from respo.files import write_text
from respo.objectives import code_hash

HERE = Path(__file__).parent
CONFIG = HERE.parent / "config"
# Smaller still than the one that snakemake runs.
SIZES = {
    "updates": 2,
    "rollouts_per_prompt": 2,
    "checkpoints": [2],
    "evaluation": {"updates": [2], "temperature": 1.0, "top_p": 0.7, "seed": 0},
}


@pytest.fixture(scope="session")
def mini() -> ModuleType:
    """The module tests/mini.py, which writes the miniature study."""
    spec = importlib.util.spec_from_file_location("mini", HERE / "mini.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def configuration(mini: ModuleType, folder: Path) -> ResolvedStudy:
    """Write the study's files below a folder and load them."""
    easy, warm_start = {"rows": 6, "samples": 2}, {"steps": 10, "batch": 8}
    mini.add_study(folder, warm_start, {"easy": easy}, baselines=["mini"], **SIZES)
    chain = mini.read(CONFIG / "datasets/chain.yaml")
    mini.write(folder / "datasets/chain.yaml", chain | {"rows": 256})
    shutil.copytree(CONFIG / "methods", folder / "methods")
    return load_study(folder, "mini")


def stage(name: str, *arguments: object) -> None:
    """Run a stage in this process."""
    before, sys.argv = sys.argv, [name, *map(str, arguments)]
    try:
        importlib.import_module(f"respo.{name}").main()
    finally:
        sys.argv = before


@pytest.fixture(scope="session")
def finished_study(mini: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of the study; not to be written to."""
    root = tmp_path_factory.mktemp("finished")
    study = configuration(mini, root / "config")
    folder = root / "results" / "mini"
    for path, text in study.config_texts(folder, code_hash).items():
        write_text(Path(path), text())
    for side, name in (("train", "chain"), ("held_out", "easy")):
        rows = folder / "data" / side / name
        options = ["--side", side, "--out", rows.with_suffix(".parquet")]
        stage("data.__main__", "--config", rows.with_suffix(".yaml"), *options)
    initial, data = folder / "initial/mini", folder / "data/train/chain.parquet"
    options = ["--data", data, "--out", initial]
    stage("training.local.warm_start", "--config", initial / "config.yaml", *options)
    for run in study.runs():
        config = run.folder(folder) / "config.yaml"
        options = ["--initial", initial / "weights", "--data", data]
        stage("training.local.__main__", "--config", config, *options)
    for run in study.evaluated():
        _evaluate(folder, study, run)
    stage("reporting.table", "respo/table1", "--study", folder, "--reference", CONFIG / "reference")
    stage("reporting.figure", "respo/fig3", "--study", folder)
    # As in a project: its commands then name no folder of this machine.
    (root / "Snakefile").touch()
    with contextlib.chdir(root):
        stage("reporting.page.__main__", "--study", "results/mini")
    write_text(folder / "report.html", "<html></html>\n")
    return folder


def _evaluate(folder, study, run) -> None:
    """Generate, score and sum up the one checkpoint of a run on the one benchmark."""
    initial, train = folder / "initial/mini", run.folder(folder) / "train.json"
    config, checkpoint, update = initial / "config.yaml", initial / "weights", 0
    if run.is_baseline:
        stage("evaluation.baseline", "--initial", initial / "initial.json", "--out", train)
    else:
        config, update = train.with_name("config.yaml"), study.study.updates
        checkpoint = train.parent / "checkpoints" / str(update)
    cell = run.cell(folder, update, "easy")
    generations, scores = cell.with_name("generations.parquet"), cell.with_name("scores.parquet")
    sampling = study.sampling("easy", run.model)
    options = {
        "checkpoint": checkpoint,
        "train": train,
        "update": update,
        "benchmark": folder / "data/held_out/easy.parquet",
        "samples": study.samples("easy"),
        "temperature": sampling.temperature,
        "top-p": sampling.top_p,
        "max-response-tokens": sampling.max_response_tokens,
        "seed": study.study.evaluation.seed,
        "out": generations,
    }
    stage("evaluation.generate", *(f"--{name}={value}" for name, value in options.items()))
    options = ["--verifier", "strict_box", "--out", scores]
    stage("evaluation.score", "--generations", generations, *options)
    address = {
        "study": study.name,
        **{key: getattr(run, key) for key in ("model", "method", "staleness", "seed")},
        "update": update,
        "benchmark": "easy",
        "scores": scores,
        "run-config": config,
        "train": train,
        "out": cell,
    }
    stage("evaluation.cell", *(f"--{name}={value}" for name, value in address.items()))


@pytest.fixture
def study_copy(finished_study: Path, tmp_path: Path) -> Path:
    """A copy of the finished study's folder, to be damaged."""
    return Path(shutil.copytree(finished_study, tmp_path / "results" / "mini"))
