# The study, the paths of its files, and what all rules share.

import os
import re
import sys
from pathlib import Path

from respo.cli import UserError, explain
from respo.config import load_settings, load_study, renew_outdated
from respo.config.schema import Rows
from respo.files import check_writable
from respo.locks import clear_stale_locks
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
    sys.exit(f"error: {message}")


try:
    settings = load_settings(CONFIG / "config.yaml", config)
    resolved = load_study(CONFIG, settings.study, settings.own_methods_folder)
except UserError as error:
    fail(error)

if settings.hub_cache_folder:
    # For jobs, which all read this file too; huggingface_hub knows no other way.
    os.environ.update(HF_HUB_CACHE=str(settings.hub_cache_folder))

study = resolved.study
# For the head of the report.
config |= {"study": settings.study, "title": study.title}
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
RUNS = resolved.runs()
CONFIG_TEXTS = resolved.config_texts(Path(STUDY), code_hash)

# Jobs on other machines read this file too, but touch nothing. A dry run renews outdated configuration
# files as a real one does, or it would not tell what the real one makes.
if workflow.is_main_process:
    try:
        alive = clear_stale_locks(Path(".snakemake"))
        if not workflow.output_settings.dryrun:
            check_writable(Path(STUDY))
        for path in renew_outdated(CONFIG_TEXTS) if alive.alone else []:
            print(f"{path}: has changed; what depends on it is made anew")
    except OSError as error:
        # A dry run needs no writable folder.
        if not workflow.output_settings.dryrun:
            fail(explain(error))


def one_of(names):
    """A wildcard constraint that admits these names only."""
    return "|".join(re.escape(name) for name in names)


wildcard_constraints:
    model=one_of(resolved.models),
    method=one_of(resolved.methods),
    benchmark=one_of(resolved.benchmarks),
    side="train|held_out",
    dataset=one_of([*resolved.datasets, *resolved.benchmarks]),
    staleness=r"[1-9]\d*",
    seed=r"0|[1-9]\d*",
    checkpoint=r"[1-9]\d*",


def config_text(pattern):
    """A parameter: the canonical text of the configuration file that a pattern and wildcards name.

    A function of the wildcards alone: snakemake compares such parameters between starts.
    """

    def text(wildcards):
        path = pattern.format(**wildcards)
        if path not in CONFIG_TEXTS:
            fail(
                f"{path}: study {settings.study!r} has no such run, model or data. Runs are named in "
                f"config/studies/{settings.study}.yaml: methods, staleness, seeds, extra_runs"
            )
        return CONFIG_TEXTS[path]()

    return text


def checkpoint_of(wildcards):
    """The weights that a cell is made from."""
    if int(wildcards.checkpoint) not in study.checkpoints:
        fail(
            f"update {wildcards.checkpoint} has no checkpoint; config/studies/{settings.study}.yaml "
            f"has checkpoints: {', '.join(map(str, study.checkpoints))}"
        )
    return f"{RUN}/checkpoints/{wildcards.checkpoint}".format(**wildcards)


def local_model(name):
    """A model that is made and trained on this machine."""
    if name not in resolved.local_models():
        fail(
            f"config/models/{name}.yaml: backend verl is not trained by snakemake; make the run's "
            "config.yaml, and `python -m respo.training.verl.options` writes verl's options for it"
        )
    return resolved.models[name]


def initial_of(wildcards):
    """The common initial weights of a run's model."""
    local_model(wildcards.model)
    return f"{STUDY}/initial/{wildcards.model}/initial.json"


def dataset_file(name):
    """The rows of a training set."""
    return f"{STUDY}/data/train/{name}.parquet"


def local_files(wildcards):
    """The files of this machine that rows are read from."""
    kind = resolved.datasets if wildcards.side == "train" else resolved.benchmarks
    if not isinstance(data := kind.get(wildcards.dataset), Rows):
        return []
    for path in data.local_files:
        if not path.is_file():
            folder = "datasets" if wildcards.side == "train" else "benchmarks"
            fail(
                f"{CONFIG / folder / wildcards.dataset}.yaml: path: {path}: no such file, seen from "
                f"{Path.cwd()}"
            )
    return [str(path) for path in data.local_files]


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
        for run in RUNS
        for benchmark in study.benchmarks
    ]


def of_runs(name):
    """A file of the run folder, for all runs."""
    return [str(run.folder(Path(STUDY)) / name) for run in RUNS]


def rule_name(kind, artifact):
    """The name of the rule that makes a table or figure."""
    return "_".join([kind, *Path(artifact).parts])


def announcement():
    """What is about to be made."""
    runs = len(RUNS)
    return (
        f"Study {settings.study}: {runs} runs of {study.updates} updates, "
        f"{runs * len(study.benchmarks)} cells, results in {STUDY}"
    )


def farewell():
    """Where the finished products lie; nothing if a cell was asked for and they are not there."""
    made = [*TABLES, *FIGURES, REPORT]
    if not all(Path(path).exists() for path in made):
        return ""
    return "\n  ".join(["Finished. Tables, figures and report of the study:", *made])
