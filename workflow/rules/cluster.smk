# What jobs ask of a cluster, as keyword resources of a rule: `**training_job`, `**evaluation_job`,
# `**small_job`. Without Slurm they mean nothing, `cards` excepted: the profile for one machine limits
# their sum.

from respo.config import load_cluster
from respo.slurm import check_cluster, check_left_behind, request

try:
    cluster = load_cluster(CONFIG / "cluster.yaml")
except UserError as error:
    fail(error)

RESOURCES = (
    "cards",
    "cpus_per_task",
    "gres",
    "mpi",
    "nodes",
    "slurm_account",
    "slurm_extra",
    "slurm_partition",
)


def job(place):
    """Keyword resources of jobs of which a function of the wildcards gives nodes and GPUs of each."""

    def resource(key):
        # Snakemake leaves out a resource that is None.
        return lambda wildcards: request(cluster, *place(wildcards)).get(key)

    return {key: resource(key) for key in RESOURCES}


def training_place(wildcards):
    """Nodes, and GPUs of each, of a job that trains a model for verl."""
    resources = resolved.models[wildcards.model].resources
    return resources.nodes, resources.gpus_per_node


def evaluation_place(wildcards):
    """One node and the GPUs that vLLM divides a model among."""
    return 1, evaluation_gpus(wildcards)


training_job = job(training_place)
evaluation_job = job(evaluation_place)
small_job = job(lambda wildcards: ())


def before_start():
    """End with a message if jobs must not or cannot be started. For `onstart`: a dry run leaves it out."""
    if not workflow.is_main_process:
        return
    gpus = {
        name: (
            model.resources.gpus
            if isinstance(model, VllmModel)
            else model.resources.gpus_per_node
        )
        for name, model in resolved.models.items()
        if isinstance(model, VerlModel | VllmModel)
    }
    try:
        # A job that makes the report is one of those that it would find.
        if alive.alone and "SLURM_JOB_ID" not in os.environ:
            check_left_behind(Path.cwd())
        if not workflow.local_exec:
            check_cluster(CONFIG / "cluster.yaml", cluster, gpus)
    except UserError as error:
        fail(error)
