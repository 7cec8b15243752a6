# Functions of the wildcards: inputs, parameters and resources of jobs.

from respo.config import Run
from respo.config.schema import Programs, Published, VllmModel

KNOWN_RUNS = {*RUNS, *resolved.evaluated()}


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


def evaluation_gpus(model):
    """GPUs of an evaluation job: vLLM divides the model among them."""
    if isinstance(model, VllmModel):
        return model.resources.gpus
    return model.resources.parallelism.rollout_tensor


def evaluation_memory(wildcards):
    """Memory of an evaluation job, MB: of a training job's, the share of its GPUs."""
    model = resolved.models[wildcards.model]
    memory = model.resources.memory_mb
    if isinstance(model, VllmModel):
        return memory
    return memory * evaluation_gpus(model) // model.resources.gpus_per_node
