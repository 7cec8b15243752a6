# The study, the paths of its files, and what all rules share.

import functools
import os
import re
import signal
import sys
from pathlib import Path

from respo.cli import UserError, explain, printable
from respo.config import Run, check_weights, load_settings, load_study, renew_outdated
from respo.config.schema import Programs, Published, VerlModel, VllmModel
from respo.config.study import BASELINE
from respo.files import check_writable
from respo.locks import clear_stale_locks
from respo.objectives import code_hash
from respo.signals import handle_in_thread
from respo.times import settle_times
from respo.training.verl.options import check_overrides


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
STUDIES = {path.name for path in (CONFIG / "studies").iterdir()}
KNOWN_RUNS = {*RUNS, *resolved.evaluated()}
# Runs share objectives, and each is read from several files.
CONFIG_TEXTS = resolved.config_texts(Path(STUDY), functools.cache(code_hash))

for run in RUNS:
    if isinstance(model := resolved.models[run.model], VerlModel):
        try:
            check_overrides(resolved.run_config(run, ""), model.resources)
        except UserError as error:
            fail(f"{run.name}: {error}")

# A target names its study too; snakemake would only say that it knows no rule for it.
for target in sys.argv[1:]:
    results, _, path = target.partition(f"{settings.results}/")
    other = path.split("/")[0]
    if not results and other != settings.study and f"{other}.yaml" in STUDIES:
        fail(
            f"{target}: is of study {other!r}, and this is {settings.study!r}; put --config "
            f"study={other} behind it"
        )

# Jobs on other machines read this file too, but touch nothing. A dry run renews outdated configuration
# files as a real one does, or it would not tell what the real one makes.
if workflow.is_main_process:
    try:
        check_weights(resolved, CONFIG)
    except UserError as error:
        fail(error)
    try:
        alive = clear_stale_locks(Path(".snakemake"))
    except OSError as error:
        fail(
            f"{explain(error)} Snakemake needs it, also to show what it would do; or start it in a "
            "checkout of your own, with --config results=FOLDER for results that lie elsewhere"
        )
    try:
        if not workflow.output_settings.dryrun:
            check_writable(Path(STUDY))
        for path in renew_outdated(CONFIG_TEXTS) if alive.alone else []:
            print(
                f"{path}: has changed, and is written anew"
                f"{', as a start does' if workflow.output_settings.dryrun else ''}; what depends on it "
                "is made anew"
            )
        if alive.alone and (settled := settle_times(Path(STUDY))):
            print(
                f"{STUDY}: {len(settled)} files are older than what they are made from (copied, or "
                "finished while snakemake was gone); their hashes agree, and they are kept"
            )
    except OSError as error:
        # A dry run needs no writable results.
        if not workflow.output_settings.dryrun:
            fail(explain(error))


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


def run_of(wildcards):
    """The run that wildcards name."""
    run = Run(
        wildcards.model, wildcards.method, int(wildcards.staleness), int(wildcards.seed)
    )
    if run not in KNOWN_RUNS:
        fail(
            f"{run.folder(Path(STUDY))}: study {settings.study!r} has no such run. Runs are named in "
            f"config/studies/{settings.study}.yaml: methods, staleness, seeds, extra_runs, baselines"
        )
    return run


def checkpoint_of(wildcards):
    """The weights that a cell is made from."""
    run, update = run_of(wildcards), int(wildcards.checkpoint)
    known = [0] if run.is_baseline else resolved.training(run).checkpoints
    if update not in known:
        fail(
            f"update {update} of {run.name} has no checkpoint; there are "
            f"{', '.join(map(str, known))} (checkpoints of config/studies/{settings.study}.yaml)"
        )
    if run.is_baseline:
        return f"{INITIAL}/weights".format(**wildcards)
    return f"{RUN}/checkpoints/{update}".format(**wildcards)


def config_of(wildcards):
    """The configuration that a cell's weights depend on."""
    return f"{INITIAL if run_of(wildcards).is_baseline else RUN}/config.yaml".format(
        **wildcards
    )


def data_of(wildcards):
    """The training set of a run."""
    return dataset_file(resolved.train_data(run_of(wildcards)))


def dataset_file(name):
    """The rows of a training set."""
    return f"{STUDY}/data/train/{name}.parquet"


def prompts_of(wildcards):
    """The configuration of a training set or benchmark; None if there is none."""
    kind = resolved.datasets if wildcards.side == "train" else resolved.benchmarks
    return kind.get(wildcards.dataset)


def local_files(wildcards):
    """The files of this machine that rows are read from."""
    if not isinstance(data := prompts_of(wildcards), Published):
        return []
    for path in data.local_files:
        if not path.is_file():
            folder = "datasets" if wildcards.side == "train" else "benchmarks"
            fail(
                f"{CONFIG / folder / wildcards.dataset}.yaml: path: {path}: no such file, seen from "
                f"{Path.cwd()}"
            )
    return [str(path) for path in data.local_files]


def data_memory(wildcards):
    """Memory of a job that makes prompts, MB: the tests of one problem can have 200 MB."""
    return 4000 if isinstance(prompts_of(wildcards), Programs) else 500


def data_minutes(wildcards):
    """Longest wall time of a job that makes prompts, minutes."""
    return 120 if isinstance(prompts_of(wildcards), Programs) else 10


def runs_programs(wildcards):
    """Whether the responses to a benchmark are programs."""
    return resolved.benchmarks[wildcards.benchmark].verifier == "code"


def tests_of(wildcards):
    """The problems whose tests judge the programs, none for other benchmarks."""
    problems = f"{STUDY}/data/held_out/{wildcards.benchmark}.parquet"
    return [problems] if runs_programs(wildcards) else []


def model_memory(wildcards):
    """Memory of a job that holds the model, MB (on each node)."""
    return resolved.models[wildcards.model].resources.memory_mb


def model_minutes(wildcards):
    """Longest wall time of a job that holds the model, minutes."""
    return resolved.models[wildcards.model].resources.minutes


def sampling(key):
    """A parameter: one of the values that decide how responses are sampled."""

    def value(wildcards):
        return getattr(resolved.sampling(wildcards.benchmark, wildcards.model), key)

    return value


def prompt_limit(wildcards):
    """The option of the longest prompt; that of a model for verl is for training alone."""
    model = resolved.models[wildcards.model]
    return (
        f"--max-prompt-tokens {model.max_prompt_tokens}"
        if isinstance(model, VllmModel)
        else ""
    )


def evaluation_gpus(wildcards):
    """GPUs of an evaluation job: vLLM divides the model among them."""
    model = resolved.models[wildcards.model]
    if isinstance(model, VllmModel):
        return model.resources.gpus
    return model.resources.parallelism.rollout_tensor


def evaluation_memory(wildcards):
    """Memory of an evaluation job, MB: of a training job's, the share of its GPUs."""
    model = resolved.models[wildcards.model]
    memory = model.resources.memory_mb
    if isinstance(model, VllmModel):
        return memory
    return memory * evaluation_gpus(wildcards) // model.resources.gpus_per_node


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


def announcement():
    """What is about to be made."""
    runs = f"{len(RUNS)} runs of {study.updates} updates, " if RUNS else ""
    return (
        f"Study {settings.study}: {runs}{len(cells(resolved.checkpoints))} cells, "
        f"results in {STUDY}"
    )


def farewell():
    """Where the finished products lie; nothing if a cell was asked for and they are not there."""
    made = [*TABLES, *FIGURES, EXPLORE, REPORT]
    if not all(Path(path).exists() for path in made):
        return ""
    return "\n  ".join(["Finished. Tables, figures and report of the study:", *made])
