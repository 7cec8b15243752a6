"""`config/datasets` and `config/benchmarks`."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from respo.config.schema.types import (
    Label,
    Positive,
    Strict,
    Verifier,
    _distinct,
)


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
    answer: Literal["text", "integer", "boxed", "list"] = Field(
        default="text",
        description="the gold answer: the field as it is; as an integer, so that `033`, `33.0` and "
        "`33^\\circ` become `33`; what the last `\\boxed{}` of the field holds; or the one item of "
        "a list that the field holds as JSON",
    )
    drop_unanswered: bool = Field(
        default=False,
        description="leave out and count rows without a gold answer, or with more than one, which "
        "otherwise are an error",
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


class Union(Strict):
    """Several sets of rows, one after the other."""

    source: Literal["union"] = Field(description="several sets of rows")
    parts: Annotated[list[Rows], Field(min_length=2)] = Field(
        description="each with the keys of `source: rows`"
    )
    distinct: bool = Field(
        default=False,
        description="keep the first copy of a prompt only, and none if the answers differ",
    )

    @property
    def local_files(self) -> list[Path]:
        """The files of this machine."""
        return [file for part in self.parts for file in part.local_files]


# `config/datasets/NAME.yaml`: prompts to train on.
Dataset = Annotated[Chain | Rows | Union, Field(discriminator="source")]


class Column(Strict):
    """What a benchmark has beside its rows."""

    label: Label = Field(description="column head in tables and figures")
    samples: Positive = Field(description="K, responses per problem")
    verifier: Verifier = Field(description="what decides on a response")


class ChainBenchmark(Column, Chain):
    """Held-out prompts of the generator."""


class RowsBenchmark(Column, Rows):
    """Rows of published files."""


# `config/benchmarks/NAME.yaml`: one column of the tables.
Benchmark = Annotated[ChainBenchmark | RowsBenchmark, Field(discriminator="source")]
