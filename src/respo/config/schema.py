"""Every configuration key, its type and its meaning: the one source.

The YAML files are validated against these models, `config/schema/*.json` (for editors) and the key
tables of `config/README.md` are generated from them.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

T = TypeVar("T")

NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]*"


def _distinct(values: list[T]) -> list[T]:
    """Refuse a list that names something twice."""
    twice = [value for i, value in enumerate(values) if value in values[:i]]
    if twice:
        raise ValueError(f"{twice[0]!r} stands twice; name each once")
    return values


def _scalar(value: Any) -> Any:
    """Refuse lists and mappings; the objective itself checks type and range."""
    if isinstance(value, list | dict):
        raise ValueError(f"{value!r} is not allowed; write a single value")
    return value


Name = Annotated[
    str, Field(pattern=f"^{NAME_PATTERN}$", max_length=100, description="a file name without .yaml")
]
Names = Annotated[list[Name], Field(min_length=1), AfterValidator(_distinct)]
Positive = Annotated[int, Field(ge=1)]
Counts = Annotated[list[Positive], Field(min_length=1), AfterValidator(_distinct)]
Seeds = Annotated[
    list[Annotated[int, Field(ge=0, lt=2**31)]], Field(min_length=1), AfterValidator(_distinct)
]
# Tables and figures carry the papers' own numbers.
TableId = Literal["respo/table1"]
FigureId = Literal["respo/fig1", "respo/fig3", "aspo/fig4"]
Fraction = Annotated[float, Field(ge=0, le=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
# Far beyond anything sensible, and far from where float32 overflows.
Coefficient = Annotated[float, Field(ge=0, le=1e6)]
Penalty = Annotated[float, Field(gt=0, le=1e6)]
# As many rounds as anybody would wait for.
Rounds = Annotated[int, Field(ge=0, le=1000)]
# One line of a table; matplotlib takes what stands between dollar signs for a formula.
Label = Annotated[str, Field(pattern=r"^[^\s$|]([^$|\n\r\t]*[^\s$|])?$")]
WholeNumber = Annotated[int, Field(ge=0)]
# `key=value`, `+key=value`, `++key=value` or `~key`, as Hydra reads them.
VerlOverrides = list[
    Annotated[str, Field(pattern=r"^((\+{0,2})[A-Za-z_][\w.@/]*=.*|~[A-Za-z_][\w.@/]*)$")]
]
Scalar = Annotated[
    Any,
    AfterValidator(_scalar),
    WithJsonSchema({"type": ["number", "boolean", "string", "null"]}),
]


class Strict(BaseModel):
    """Unknown keys and values of another type are errors, never coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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

    @property
    def own_methods_folder(self) -> Path | None:
        """The folder, with the home folder written out."""
        return Path(self.own_methods).expanduser() if self.own_methods else None

    @property
    def hub_cache_folder(self) -> Path | None:
        """The absolute path of the folder."""
        return Path(self.hub_cache).expanduser().absolute() if self.hub_cache else None


# --- data -----------------------------------------------------------------------------------------


class Chain(Strict):
    """Prompts such as `3+5*2-7=`, evaluated from left to right modulo 10."""

    source: Literal["chain"] = Field(description="the generator of the rows")
    operators: Annotated[
        list[Annotated[int, Field(ge=1, le=64)]], Field(min_length=2, max_length=2)
    ] = Field(description="least and greatest number of operators in a prompt")
    rows: Positive = Field(description="number of distinct prompts")
    seed: int = Field(ge=0, lt=2**31, description="seed of the generator")

    def prompt_tokens(self) -> tuple[int, int]:
        """Tokens of the shortest and of the longest prompt: digits, operators, equals sign."""
        low, high = (2 * operators + 2 for operators in self.operators)
        return low, high

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = self.operators
        if low > high:
            raise ValueError(f"operators: {low} is greater than {high}; write [least, greatest]")
        return self


class RowFields(Strict):
    """Where a row of the files has what; a dot goes into a nested field."""

    prompt: str = Field(
        min_length=1, description="field of the question: a text, or a chat of one user message"
    )
    answer: str = Field(
        min_length=1, description="field of the gold answer: a text, a number, or a list of one"
    )
    id: str | None = Field(
        default=None,
        min_length=1,
        description="field of a name that no other row has; left out: made from the position",
    )


def _inside(file: str) -> str:
    """Refuse files outside the repository or folder."""
    if file.startswith("/") or ".." in file.split("/"):
        raise ValueError(f"{file!r} leaves the repository; write a path inside it")
    return file


class Rows(Strict):
    """Rows of published files: Parquet, JSON lines, or a JSON list."""

    source: Literal["rows"] = Field(description="rows of files, from the hub or this machine")
    hub: str | None = Field(
        default=None,
        pattern=r"^[\w.-]+/[\w.-]+$",
        description="`owner/name` of a data set on the Hugging Face hub; needs `revision`",
    )
    revision: str | None = Field(
        default=None,
        pattern=r"^[\w.-]+$",
        description="commit of the data set, or a tag or branch, which may move",
    )
    path: str | None = Field(
        default=None,
        pattern=r"^[^{}\x00-\x1f]+$",
        description="instead of `hub`: a file of this machine, or the folder of `files`",
    )
    files: (
        Annotated[
            list[Annotated[str, Field(pattern=r"^[^{}\x00-\x1f]+$"), AfterValidator(_inside)]],
            Field(min_length=1),
            AfterValidator(_distinct),
        ]
        | None
    ) = Field(default=None, description="files of the data set or folder, one after the other")
    fields: RowFields = Field(description="where a row of the files has what")
    template: str = Field(
        default="{prompt}", description="the prompt; `{prompt}` stands for the question"
    )
    answer: Literal["text", "integer", "boxed"] = Field(
        default="text",
        description="the gold answer: the field as it is; as an integer, so that `033`, `33.0` and "
        "`33^\\circ` become `33`; or what the last `\\boxed{}` of the field holds",
    )
    distinct: bool = Field(
        default=False,
        description="keep the first copy of a prompt only, and none if the answers differ",
    )
    rows: Positive | None = Field(
        default=None, description="rows of the files; another number is an error; null: any"
    )

    @property
    def local_files(self) -> list[Path]:
        """The files of this machine; none if they are of the hub."""
        if self.path is None:
            return []
        place = Path(self.path).expanduser()
        return [place / file for file in self.files] if self.files else [place]

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.hub is None) == (self.path is None):
            raise ValueError("hub, path: write one of them")
        if self.hub and not (self.revision and self.files):
            raise ValueError("hub: needs revision and files; add them")
        if self.revision and not self.hub:
            raise ValueError("revision: belongs to hub; remove it")
        if self.template.count("{prompt}") != 1:
            raise ValueError("template: write {prompt} once, where the question belongs")
        return self


# `config/datasets/NAME.yaml`: prompts to train on.
Dataset = Annotated[Chain | Rows, Field(discriminator="source")]


class Column(Strict):
    """What a benchmark has beside its rows."""

    label: Label = Field(description="column head in tables and figures")
    samples: Positive = Field(description="K, responses per problem")
    verifier: Literal["strict_box", "math_verify"] = Field(description="what decides on a response")


class ChainBenchmark(Column, Chain):
    """Held-out prompts of the generator."""


class RowsBenchmark(Column, Rows):
    """Rows of published files."""


# `config/benchmarks/NAME.yaml`: one column of the tables.
Benchmark = Annotated[ChainBenchmark | RowsBenchmark, Field(discriminator="source")]


# --- policies -------------------------------------------------------------------------------------


class Architecture(Strict):
    """Sizes of a Qwen3 policy, named as in transformers' configuration."""

    model_type: Literal["qwen3", "qwen3_moe"] = Field(description="dense or mixture of experts")
    hidden_size: Positive = Field(description="width of the residual stream")
    num_hidden_layers: Positive = Field(description="number of layers")
    num_attention_heads: Positive = Field(description="query heads")
    num_key_value_heads: Positive = Field(description="key and value heads")
    head_dim: Positive = Field(description="width of a head; even")
    intermediate_size: Positive = Field(
        description="width of the feed-forward layer (of an expert)"
    )
    num_experts: Positive | None = Field(default=None, description="experts; `qwen3_moe` only")
    num_experts_per_tok: Positive | None = Field(
        default=None, description="experts that each token uses; `qwen3_moe` only"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_key_value_heads: {self.num_key_value_heads} does not divide "
                f"num_attention_heads {self.num_attention_heads}"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim: {self.head_dim} is odd; rotary embeddings need it even")
        experts = (self.num_experts, self.num_experts_per_tok)
        if self.model_type == "qwen3" and experts != (None, None):
            raise ValueError("num_experts, num_experts_per_tok: only for model_type qwen3_moe")
        if self.model_type == "qwen3_moe":
            if None in experts:
                raise ValueError("qwen3_moe needs num_experts and num_experts_per_tok")
            if self.num_experts_per_tok > self.num_experts:  # type: ignore[operator]
                raise ValueError("num_experts_per_tok: is greater than num_experts")
        return self


class WarmStart(Strict):
    """Supervised steps from random weights; every run of the model starts from their result."""

    data: Name = Field(description="demonstrations are of prompts of this data set")
    steps: Positive = Field(description="supervised steps")
    batch: Positive = Field(description="demonstrations per step")
    learning_rate: PositiveFloat = Field(description="peak rate; cosine decay after a warm-up")
    direct: Fraction = Field(description="share of demonstrations without reasoning")
    corrupted: Fraction = Field(description="share of reasoning steps with a random result")
    seed: int = Field(ge=0, lt=2**31, description="seed of weights and demonstrations")


class LengthPenalty(Strict):
    """The penalty of long responses, where a file sets its own."""

    overlong_buffer: WholeNumber | None = Field(
        default=None, description="instead of the study's (a method's goes before a model's)"
    )
    overlong_factor: Penalty | None = Field(
        default=None, description="instead of the study's (a method's goes before a model's)"
    )


class LocalPolicy(Strict):
    """A small policy that is made, trained and sampled on this machine.

    Every key changes the weights or the responses.
    """

    backend: Literal["local"] = Field(description="the trainer: torch on this machine")
    architecture: Architecture = Field(description="sizes of the network")
    warm_start: WarmStart = Field(description="how the common initial weights are made")
    max_prompt_tokens: Positive = Field(description="longer prompts are dropped and counted")
    max_response_tokens: Positive = Field(description="responses are cut here and flagged")

    def impossible_options(self, training: "Training", staleness: int) -> dict[str, str]:
        """Return the options that this trainer does not have, each with the reason and remedy."""
        model_type = self.architecture.model_type
        if training.routing_replay == "none" or model_type == "qwen3_moe":
            return {}
        return {
            "routing_replay": f"{training.routing_replay!r} needs a mixture of experts, and "
            f"model_type is {model_type!r}; write none or train another model"
        }


class Checkpoint(Strict):
    """Where the initial weights of a published model are: exactly one of `hub` and `path`."""

    hub: str | None = Field(
        default=None,
        pattern=r"^[\w.-]+/[\w.-]+$",
        description="`owner/name` on the Hugging Face hub; needs `revision`",
    )
    revision: str | None = Field(
        default=None,
        pattern=r"^[\w./-]+$",
        description="commit, tag or branch of the repository",
    )
    path: str | None = Field(
        default=None, min_length=1, description="a folder with the weights, instead of `hub`"
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.hub is None) == (self.path is None):
            raise ValueError("name either hub and revision, or path")
        if (self.hub is None) != (self.revision is None):
            raise ValueError("hub and revision belong together; add or remove one")
        return self


class VerlPolicy(Strict):
    """A published model that verl trains on GPUs.

    Every key changes the weights or the responses; what places the work is in `VerlResources`.
    """

    backend: Literal["verl"] = Field(description="the trainer: verl on one or more GPU nodes")
    checkpoint: Checkpoint = Field(description="the initial weights")
    thinking: bool | None = Field(
        description="`enable_thinking` of the chat template; null to leave it to the template"
    )
    mixture_of_experts: bool = Field(description="whether routing replay is possible")
    engine: Literal["fsdp", "megatron"] = Field(description="verl's training engine")
    master_weights: Literal["fp32", "bf16"] = Field(
        default="fp32",
        description="precision of the weights that the optimizer moves; `bf16` with `fsdp` only",
    )
    max_prompt_tokens: Positive = Field(description="longer prompts are dropped and counted")
    max_response_tokens: Positive = Field(description="responses are cut here and flagged")
    verl_overrides: VerlOverrides = Field(
        default=[], description="further options of verl (Hydra) that change the result"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.engine == "megatron" and self.master_weights != "fp32":
            raise ValueError(
                f"master_weights: {self.master_weights!r} is not possible with engine megatron, "
                f"which keeps them in fp32; leave the key out"
            )
        return self

    def impossible_options(self, training: "Training", staleness: int) -> dict[str, str]:
        """Return the options that this trainer does not have, each with the reason and remedy."""
        problems = {}
        replay = training.routing_replay
        if replay != "none" and not self.mixture_of_experts:
            problems["routing_replay"] = (
                f"{replay!r} needs a mixture of experts, and mixture_of_experts is false; write "
                f"none or train another model"
            )
        elif replay != "none" and self.engine != "megatron":
            problems["routing_replay"] = (
                f"{replay!r} needs engine megatron: verl replays no routing with {self.engine}"
            )
        if training.dynamic_sampling:
            problems["dynamic_sampling"] = (
                f"{training.dynamic_sampling} is not possible with verl, whose own form knows no "
                f"limit of rounds; write 0"
            )
        inside = [update for update in training.checkpoints if update % staleness]
        if inside:
            problems["checkpoints"] = (
                f"{inside[0]} lies inside a rollout batch of N = {staleness} updates, and verl "
                f"saves only between two; take multiples of {staleness}"
            )
        # verl moves the learning rate once per rollout batch.
        batches = training.updates // staleness
        warmup = training.optimizer.warmup_updates // staleness
        if warmup >= batches:
            problems["optimizer"] = (
                f"warmup_updates {training.optimizer.warmup_updates} lasts as long as the run; "
                f"lower it"
            )
        return problems


Policy = Annotated[LocalPolicy | VerlPolicy, Field(discriminator="backend")]


class Resources(Strict):
    """What a training job of the model asks of the machine."""

    memory_mb: Positive = Field(description="memory of a training job, MB (of each node)")
    minutes: Positive = Field(description="longest wall time of a training job, minutes")


class Parallelism(Strict):
    """How the GPUs share the work; those left out are 1."""

    sequence: Positive = Field(default=1, description="Ulysses sequence parallel; `fsdp` only")
    tensor: Positive = Field(default=1, description="tensor parallel; `megatron` only")
    pipeline: Positive = Field(default=1, description="pipeline parallel; `megatron` only")
    context: Positive = Field(default=1, description="context parallel; `megatron` only")
    expert: Positive = Field(default=1, description="expert parallel; `megatron` only")
    expert_tensor: Positive = Field(
        default=1, description="tensor parallel within an expert; `megatron` only"
    )
    rollout_tensor: Positive = Field(default=1, description="tensor parallel of vLLM")


class VerlResources(Resources):
    """Where and how a job of verl runs; none of it trains anew."""

    nodes: Positive = Field(description="nodes of a training job")
    gpus_per_node: Positive = Field(description="GPUs of each node")
    parallelism: Parallelism = Field(description="how the GPUs share the work")
    tokens_per_gpu: Positive = Field(
        description="most tokens of a micro-batch on a GPU; times `sequence` or `context` at least "
        "a whole prompt and response"
    )
    offload: bool = Field(
        default=False, description="weights and optimizer wait in main memory while vLLM samples"
    )
    rollout_memory: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="share of the GPU memory for vLLM"
    )
    verl_overrides: VerlOverrides = Field(
        default=[], description="further options of verl (Hydra) that only place the work"
    )

    @property
    def gpus(self) -> int:
        """GPUs of a job."""
        return self.nodes * self.gpus_per_node

    @model_validator(mode="after")
    def _divisible(self) -> Self:
        sizes = self.parallelism
        for name, size, whole in (
            ("sequence", sizes.sequence, self.gpus),
            (
                "tensor x pipeline x context",
                sizes.tensor * sizes.pipeline * sizes.context,
                self.gpus,
            ),
            (
                "expert x expert_tensor x pipeline",
                sizes.expert * sizes.expert_tensor * sizes.pipeline,
                self.gpus,
            ),
            ("rollout_tensor", sizes.rollout_tensor, self.gpus_per_node),
        ):
            if whole % size:
                of = "of a node" if name == "rollout_tensor" else "of the job"
                raise ValueError(f"parallelism: {name} = {size} does not divide {whole} GPUs {of}")
        return self


class LocalModel(LengthPenalty, LocalPolicy):
    """`config/models/NAME.yaml` with `backend: local`: a policy and what its jobs need."""

    label: Label = Field(description="name in tables and figures")
    resources: Resources = Field(description="needs of a training job")

    @property
    def policy(self) -> LocalPolicy:
        """What training depends on."""
        return LocalPolicy(**{key: getattr(self, key) for key in LocalPolicy.model_fields})


class VerlModel(LengthPenalty, VerlPolicy):
    """`config/models/NAME.yaml` with `backend: verl`: a policy and where its jobs run."""

    label: Label = Field(description="name in tables and figures")
    resources: VerlResources = Field(description="needs of a training job")

    @property
    def policy(self) -> VerlPolicy:
        """What training depends on."""
        return VerlPolicy(**{key: getattr(self, key) for key in VerlPolicy.model_fields})

    @property
    def data_parallel(self) -> int:
        """The number of ranks that a mini-batch is divided among."""
        sizes = self.resources.parallelism
        if self.engine == "fsdp":
            return self.resources.gpus // sizes.sequence
        return self.resources.gpus // (sizes.tensor * sizes.pipeline * sizes.context)

    @model_validator(mode="after")
    def _placed(self) -> Self:
        sizes = self.resources.parallelism
        foreign = {
            "fsdp": ("tensor", "pipeline", "context", "expert", "expert_tensor"),
            "megatron": ("sequence",),
        }
        for name in foreign[self.engine]:
            if getattr(sizes, name) != 1:
                raise ValueError(
                    f"resources.parallelism.{name}: engine {self.engine} has none; leave it out"
                )
        if not self.mixture_of_experts and (sizes.expert, sizes.expert_tensor) != (1, 1):
            raise ValueError(
                "resources.parallelism.expert, expert_tensor: only for a mixture of experts"
            )
        longest = self.max_prompt_tokens + self.max_response_tokens
        budget = self.resources.tokens_per_gpu * sizes.sequence * sizes.context
        if budget < longest:
            raise ValueError(
                f"resources.tokens_per_gpu: {self.resources.tokens_per_gpu} is too few for a "
                f"prompt and response of {longest} tokens; raise it, or sequence or context"
            )
        return self

    def impossible_options(self, training: "Training", staleness: int) -> dict[str, str]:
        """Return also the options that these GPUs cannot train with."""
        problems = super().impossible_options(training, staleness)
        responses = training.mini_batch * training.rollouts_per_prompt
        if responses % self.data_parallel:
            problems["mini_batch"] = (
                f"{training.mini_batch} prompts of {training.rollouts_per_prompt} responses do "
                f"not divide among {self.data_parallel} data-parallel ranks; change mini_batch or "
                f"the model's resources"
            )
        return problems


Model = Annotated[LocalModel | VerlModel, Field(discriminator="backend")]


# --- methods --------------------------------------------------------------------------------------

Aggregation = Literal[
    "token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"
]


class Objective(Strict):
    """What a method computes."""

    objective: str = Field(
        description="a coefficient function of src/respo/objectives or of `own_methods`"
    )
    parameters: dict[str, Scalar] = Field(
        default={}, description="its keyword arguments; those left out keep the defaults"
    )


RoutingReplay = Literal["none", "R2", "R3"]


class Overrides(LengthPenalty):
    """The options of a run that a method sets itself; those left out are the study's."""

    loss_aggregation: Aggregation | None = Field(
        default=None, description="instead of the study's, where the paper prescribes another"
    )
    kl_coefficient: Coefficient | None = Field(default=None, description="instead of the study's")
    entropy_coefficient: Coefficient | None = Field(
        default=None, description="instead of the study's"
    )
    dynamic_sampling: Rounds | None = Field(default=None, description="instead of the study's")
    routing_replay: RoutingReplay | None = Field(default=None, description="instead of the study's")


class Method(Overrides, Objective):
    """`config/methods/NAME.yaml`: an objective with its parameters."""

    label: Label = Field(description="name in tables and figures")
    source: str = Field(min_length=1, description="paper and section")
    deviations: list[str] = Field(description="numbered departures from the source; [] if none")


# --- studies --------------------------------------------------------------------------------------


class Optimizer(Strict):
    """AdamW at a constant learning rate."""

    learning_rate: PositiveFloat = Field(description="constant after the warm-up")
    warmup_updates: int = Field(ge=0, description="updates of linear warm-up; 0 for none")
    betas: Annotated[
        list[Annotated[float, Field(ge=0, lt=1)]], Field(min_length=2, max_length=2)
    ] = Field(description="decay of the two moments")
    weight_decay: float = Field(ge=0, allow_inf_nan=False, description="decoupled weight decay")
    gradient_clip: PositiveFloat = Field(description="largest norm of the gradient")


class Training(Strict):
    """The settings that all runs of a study share."""

    updates: Positive = Field(description="policy updates of a run")
    mini_batch: Positive = Field(description="M, prompts per update")
    rollouts_per_prompt: int = Field(
        ge=2, description="G, responses per prompt; a group of one has no advantage"
    )
    temperature: PositiveFloat = Field(
        description="of rollouts and of the log-probabilities in the loss alike"
    )
    loss_aggregation: Aggregation = Field(description="how token losses become one number")
    kl_coefficient: Coefficient = Field(
        default=0.0,
        description="weight of the KL loss (k3) against the initial weights; 0 for none",
    )
    entropy_coefficient: Coefficient = Field(
        default=0.0, description="weight of the entropy that the loss rewards; 0 for none"
    )
    dynamic_sampling: Rounds = Field(
        default=0,
        description="most rounds in which groups without spread are replaced by fresh ones; 0 off",
    )
    overlong_buffer: WholeNumber = Field(
        default=0,
        description="tokens before the response limit in which a penalty grows; 0 for none",
    )
    overlong_factor: Penalty = Field(
        default=1.0, description="the penalty at the limit; needs `overlong_buffer`"
    )
    routing_replay: RoutingReplay = Field(
        default="none",
        description="experts in an update: the router's own choice, or that of the rollout in the "
        "trainer (`R2`) or the sampler (`R3`); `qwen3_moe` only",
    )
    optimizer: Optimizer = Field(description="AdamW")
    checkpoints: Counts = Field(description="updates whose weights are kept for evaluation")

    @model_validator(mode="after")
    def _checkpoints_exist(self) -> Self:
        late = [update for update in self.checkpoints if update > self.updates]
        if late:
            raise ValueError(f"checkpoints: {late[0]} comes after the last update {self.updates}")
        return self


class Evaluation(Strict):
    """How the responses of a benchmark are sampled."""

    updates: Counts = Field(description="checkpoints to evaluate; tables show the last one")
    temperature: PositiveFloat = Field(description="sampling temperature")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(description="nucleus sampling mass; 1.0 off")
    seed: int = Field(ge=0, lt=2**31, description="seed of the samples")


class ExtraRuns(Strict):
    """A further block of runs beside the grid."""

    methods: Names = Field(description="as in the study")
    staleness: Counts = Field(description="as in the study")
    models: Names | None = Field(default=None, description="the study's models if left out")
    seeds: Seeds | None = Field(default=None, description="the study's seeds if left out")


class Study(Training):
    """`config/studies/NAME.yaml`: the grid methods x models x staleness x seeds."""

    title: Label = Field(description="heads the report")
    methods: Names = Field(description="files of config/methods, in the order of the tables")
    models: Names = Field(description="files of config/models")
    staleness: Counts = Field(
        description="N, updates per rollout batch, all with the same behaviour policy"
    )
    seeds: Seeds = Field(description="seeds of the runs")
    extra_runs: list[ExtraRuns] = Field(default=[], description="runs beside the grid")
    train_data: Name = Field(description="a file of config/datasets")
    benchmarks: Names = Field(description="files of config/benchmarks, the columns of the tables")
    evaluation: Evaluation = Field(description="how benchmarks are sampled")
    tables: Annotated[list[TableId], AfterValidator(_distinct)] = Field(
        description="tables to make"
    )
    figures: Annotated[list[FigureId], AfterValidator(_distinct)] = Field(
        description="figures to make"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for n in [*self.staleness, *(n for extra in self.extra_runs for n in extra.staleness)]:
            if self.updates % n:
                raise ValueError(
                    f"staleness: {n} does not divide updates {self.updates}; a rollout batch "
                    f"would be cut short"
                )
        for update in self.evaluation.updates:
            if update not in self.checkpoints:
                raise ValueError(
                    f"evaluation.updates: {update} is not in checkpoints {self.checkpoints}"
                )
        return self


# --- what a run depends on ------------------------------------------------------------------------


class InitialConfig(Strict):
    """All that the initial weights of a local model depend on."""

    model: LocalPolicy
    # Demonstrations can be written for prompts of the generator only.
    data: Chain


class RunConfig(Strict):
    """`config.yaml` of a run folder: all that training depends on, and nothing else.

    Labels and names are left out: changing one must not train anew. ``objective_code`` changes with
    the objective's formula, not with its comments.
    """

    model: Policy
    objective: Objective
    objective_code: str
    staleness: Positive
    seed: int
    training: Training
    train_data: Dataset

    @model_validator(mode="after")
    def _possible(self) -> Self:
        problems = impossible_options(self.model, self.training, self.staleness)
        for option, reason in problems.items():
            raise ValueError(f"training.{option}: {reason}")
        return self


def impossible_options(
    model: LocalPolicy | VerlPolicy, training: Training, staleness: int
) -> dict[str, str]:
    """Return the options that a model cannot be trained with, each with the reason and remedy."""
    problems = {}
    if training.overlong_buffer > model.max_response_tokens:
        problems["overlong_buffer"] = (
            f"{training.overlong_buffer} is greater than max_response_tokens "
            f"{model.max_response_tokens}; lower it"
        )
    return problems | model.impossible_options(training, staleness)
