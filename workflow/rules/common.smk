# The study, the paths of its files, and what all rules share.

import os
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from respo.cli import UserError
from respo.config import Run, canonical, load_settings, load_study
from respo.config.schema import Chain
from respo.locks import clear_stale_locks
from respo.objectives import code_hash


envvars:
    "PATH",


# Jobs use the Python that runs snakemake, also where its environment is not activated.
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)

CONFIG = Path(workflow.basedir) / "config"

try:
    settings = load_settings(CONFIG / "config.yaml", config)
    resolved = load_study(CONFIG, settings.study)
except UserError as error:
    sys.exit(f"error: {error}")

# Jobs on other machines read this file too, but only the main process owns the locks.
if workflow.is_main_process:
    alive = clear_stale_locks(Path(".snakemake"))

study = resolved.study
STUDY = f"{settings.results}/{settings.study}"
RUN = f"{STUDY}/{{model}}/{{method}}/N{{staleness}}/seed{{seed}}"
EVAL = f"{RUN}/eval/{{checkpoint}}/{{benchmark}}"
LOGS = f"{STUDY}/logs"
TIMES = f"{STUDY}/benchmarks"
RUN_NAME = "{model}/{method}/N{staleness}/seed{seed}"
EVAL_NAME = f"{RUN_NAME}/{{checkpoint}}/{{benchmark}}"

TABLES = [
    f"{STUDY}/tables/{name}.{ext}"
    for name in study.tables
    for ext in ("md", "html", "tex", "csv")
]
FIGURES = [
    f"{STUDY}/figures/{name}.{ext}" for name in study.figures for ext in ("pdf", "png")
]
REPORT = f"{STUDY}/report.html"


def one_of(names):
    """A wildcard constraint that admits these names only."""
    return "|".join(re.escape(name) for name in names)


wildcard_constraints:
    model=one_of(resolved.models),
    method=one_of(resolved.methods),
    benchmark=one_of(resolved.benchmarks),
    side="train|held_out",
    dataset=one_of([*resolved.datasets, *resolved.benchmarks]),
    staleness=r"\d+",
    seed=r"\d+",
    checkpoint=r"\d+",


def run_of(wildcards):
    """The run that a path names; an error if the study has no such run."""
    run = Run(
        wildcards.model, wildcards.method, int(wildcards.staleness), int(wildcards.seed)
    )
    if run not in resolved.runs():
        raise WorkflowError(
            f"{run.name} is not a run of study {settings.study!r}. "
            f"Add it to config/studies/{settings.study}.yaml: methods, staleness, seeds or extra_runs."
        )
    return run


def run_config_text(wildcards):
    """The canonical configuration of a run."""
    run = run_of(wildcards)
    code = code_hash(resolved.methods[run.method].objective)
    return canonical(resolved.run_config(run, code).model_dump(mode="json"))


def checkpoint_of(wildcards):
    """The weights that a cell is made from."""
    if int(wildcards.checkpoint) not in study.checkpoints:
        raise WorkflowError(
            f"update {wildcards.checkpoint} has no checkpoint; checkpoints of study "
            f"{settings.study!r}: {', '.join(map(str, study.checkpoints))}"
        )
    return f"{RUN}/checkpoints/{wildcards.checkpoint}".format(**wildcards)


def dataset_file(name):
    """The rows of a training set."""
    return f"{STUDY}/data/train/{name}.parquet"


def data_config_text(wildcards):
    """The configuration of a training set or benchmark: what its rows depend on."""
    known = resolved.datasets if wildcards.side == "train" else resolved.benchmarks
    chosen = known[wildcards.dataset].model_dump(
        mode="json", include=set(Chain.model_fields)
    )
    return canonical(chosen)


def model_memory(wildcards):
    """Memory of a job that holds the model, MB."""
    return resolved.models[wildcards.model].resources.memory_mb


def model_minutes(wildcards):
    """Longest wall time of a job that holds the model, minutes."""
    return resolved.models[wildcards.model].resources.minutes


def cells_at(checkpoint):
    """The cells of all runs at one checkpoint."""
    return [
        str(run.cell(Path(STUDY), checkpoint, benchmark))
        for run in resolved.runs()
        for benchmark in study.benchmarks
    ]


def metrics(wildcards):
    """The training metrics of all runs."""
    return [str(run.folder(Path(STUDY)) / "metrics.parquet") for run in resolved.runs()]


def rule_name(kind, artifact):
    """The name of the rule that makes a table or figure."""
    return "_".join([kind, *Path(artifact).parts])


def announcement():
    """What is about to be made."""
    runs = len(resolved.runs())
    return (
        f"Study {settings.study}: {runs} runs of {study.updates} updates, "
        f"{runs * len(study.benchmarks)} cells, results in {STUDY}"
    )


def farewell():
    """Where the finished products lie."""
    made = [path for path in [*TABLES, *FIGURES, REPORT] if Path(path).exists()]
    if not made:
        return ""
    return "\n  ".join(["Finished. Tables, figures and report of the study:", *made])
