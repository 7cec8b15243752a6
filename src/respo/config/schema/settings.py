"""`config/config.yaml`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from respo.config.schema.types import Name, Positive, Strict, VerlOverrides, _distinct

# What Slurm takes for a name; it stands in a command line.
Word = Annotated[str, Field(pattern=r"^\w[\w.,:@+-]*$")]


class Settings(Strict):
    """`config/config.yaml`: which study runs and where. `--config key=value` overrides a key."""

    study: Name = Field(description="the study to run: a file of config/studies")
    results: str = Field(
        default="results",
        # Snakemake reads braces as wildcards.
        pattern=r"^[^{}\x00-\x1f]+$",
        description="the folder that all results go to",
    )
    device: str = Field(
        default="cpu",
        pattern=r"^(cpu|cuda(:\d+)?)$",
        description="where local training and sampling run: `cpu`, `cuda` or `cuda:1`",
    )
    hub_cache: str | None = Field(
        default=None,
        min_length=1,
        description="the folder of files from the Hugging Face hub, see `python -m "
        "respo.data.prefetch`; left out: HF_HUB_CACHE, or that of huggingface_hub",
    )
    own_methods: str | None = Field(
        default=None,
        pattern=r"^[^{}\x00-\x1f]+$",
        description="a folder of your own: its `NAME.yaml` are methods that join the study, its "
        "`*.py` their objectives",
    )

    verl_overrides: VerlOverrides = Field(
        default=[], description="further options of verl for all runs, beside the study's"
    )
    loggers: Annotated[list[Literal["wandb", "tensorboard"]], AfterValidator(_distinct)] = Field(
        default=[], description="where verl reports to as well, by its own loggers"
    )

    @property
    def own_methods_folder(self) -> Path | None:
        """The folder, with the home folder written out."""
        return Path(self.own_methods).expanduser() if self.own_methods else None

    @property
    def hub_cache_folder(self) -> Path | None:
        """The absolute path of the folder."""
        return Path(self.hub_cache).expanduser().absolute() if self.hub_cache else None


class Cluster(Strict):
    """`config/cluster.yaml`: what Slurm is to be told."""

    account: Word | None = Field(
        description="the account that pays for the jobs; `none`: the cluster has none; null: not "
        "yet said, and no job is started"
    )
    partition: Word | None = Field(description="of jobs without GPUs; null: the default one")
    gpu_partition: Word | None = Field(description="of jobs with GPUs; null: the default one")
    gpu_type: Annotated[str, Field(pattern=r"^[\w.+-]+$")] | None = Field(
        description="such as `h100`, as `sinfo --format %G` tells; null: the cluster has one type"
    )
    gpus_per_node: Positive = Field(
        description="GPUs of a node; a job that takes all of them has the node for itself"
    )
