# The study of this start, and the paths of its files.

import functools
import os
import re
import sys
from pathlib import Path

from respo.cli import UserError, printable
from respo.config import load_settings, load_study
from respo.config.schema import VerlModel
from respo.config.study import BASELINE
from respo.objectives import code_hash


envvars:
    "PATH",


# Jobs use the Python that runs snakemake, also where its environment is not activated.
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)

CONFIG = Path(workflow.basedir) / "config"


def fail(message):
    """End with one message, before any work starts."""
    sys.exit(f"error: {printable(str(message))}")


try:
    settings = load_settings(CONFIG / "config.yaml", config)
    resolved = load_study(
        CONFIG, settings.study, settings.own_methods_folder, settings.verl_overrides
    )
except UserError as error:
    fail(error)

if settings.hub_cache_folder:
    # For jobs, which all read this file too; huggingface_hub knows no other way.
    os.environ.update(HF_HUB_CACHE=str(settings.hub_cache_folder))

study = resolved.study
# For the head of the report.
config |= {"study": settings.study, "title": study.title}
IN_ENV = os.path.relpath(Path(workflow.basedir) / "workflow" / "in-env")
# No parameter of a rule: another logger trains nothing anew.
os.environ.update(
    RESPO_LOGGERS=" ".join(f"--logger {name}" for name in settings.loggers)
)
STUDY = f"{settings.results}/{settings.study}"
RUN = f"{STUDY}/{{model}}/{{method}}/N{{staleness}}/seed{{seed}}"
INITIAL = f"{STUDY}/initial/{{model}}"
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
EXPLORE = f"{STUDY}/explore.html"
REPORT = f"{STUDY}/report.html"
RUNS = resolved.runs()
# Runs share objectives, and each is read from several files.
CONFIG_TEXTS = resolved.config_texts(Path(STUDY), functools.cache(code_hash))


def one_of(names):
    """A wildcard constraint that admits these names only."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


LOCAL_MODELS = one_of(resolved.local_models())
VERL_MODELS = one_of(
    name for name, model in resolved.models.items() if isinstance(model, VerlModel)
)
# Those whose weights are found, not made, and that vLLM evaluates.
PUBLISHED_MODELS = one_of(resolved.models.keys() - resolved.local_models().keys())
METHODS = one_of(resolved.methods)


wildcard_constraints:
    model=one_of(resolved.models),
    method=one_of([*resolved.methods, BASELINE]),
    benchmark=one_of(resolved.benchmarks),
    side="train|held_out",
    dataset=one_of([*resolved.datasets, *resolved.benchmarks]),
    staleness=r"0|[1-9]\d*",
    seed=r"0|[1-9]\d*",
    checkpoint=r"0|[1-9]\d*",


def cells(checkpoints):
    """The cells of all that is evaluated, at the checkpoints that a function gives for a run."""
    return [
        str(run.cell(Path(STUDY), checkpoint, benchmark))
        for run in resolved.evaluated()
        for checkpoint in checkpoints(run)
        for benchmark in study.benchmarks
    ]


def of_runs(name):
    """A file of the run folder, for all runs."""
    return [str(run.folder(Path(STUDY)) / name) for run in RUNS]


def rule_name(kind, artifact):
    """The name of the rule that makes a table or figure."""
    return "_".join([kind, *Path(artifact).parts])
