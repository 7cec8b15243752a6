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


def job(places):
    """Keyword resources of jobs, from nodes and GPUs of each by model.

    What is the same for all models is a value: Snakemake asks each function once for each job.
    """
    asked = {model: request(cluster, *place) for model, place in places.items()}

    def resource(key):
        values = {resources.get(key) for resources in asked.values()}
        if len(values) == 1:
            return values.pop()
        return lambda wildcards: asked[wildcards.model].get(key)

    found = {key: resource(key) for key in RESOURCES}
    return {key: value for key, value in found.items() if value is not None}


training_job = job(
    {
        name: (model.resources.nodes, model.resources.gpus_per_node)
        for name, model in resolved.models.items()
        if isinstance(model, VerlModel)
    }
)
# One node and the GPUs that vLLM divides a model among.
evaluation_job = job(
    {
        name: (1, evaluation_gpus(model))
        for name, model in resolved.models.items()
        if isinstance(model, VerlModel | VllmModel)
    }
)
small_job = request(cluster)


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
