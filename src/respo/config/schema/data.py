"""`config/datasets` and `config/benchmarks`."""

from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from respo.config.schema.types import (
    Bytes,
    Label,
    Positive,
    Seed,
    Strict,
    Temperature,
    TopP,
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
    seed: Seed = Field(description="seed of the generator")

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


class Files(Strict):
    """Files of the hub or of this machine; which split of a set is read, the list of files says."""

    source: str
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
    ) = Field(
        default=None,
        description="files of the data set or folder, one after the other; they are the split",
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
        return self


def _check_places(key: str, template: str, *places: str) -> None:
    """Refuse a template that leaves out a part of the prompt, or has it twice."""
    for place in places:
        if template.count(place) != 1:
            raise ValueError(f"{key}: write {place} once, where it belongs")


class Rows(Files):
    """Rows of published files: Parquet, JSON lines, a JSON list, or CSV."""

    source: Literal["rows"] = Field(description="rows of files, from the hub or this machine")
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

    @model_validator(mode="after")
    def _template(self) -> Self:
        _check_places("template", self.template, "{prompt}")
        return self


class ChoiceFields(Strict):
    """Where a question with options has what; a dot goes into a nested field."""

    prompt: str = Field(min_length=1, description="field of the question")
    options: Annotated[
        list[Annotated[str, Field(min_length=1)]], Field(min_length=1), AfterValidator(_distinct)
    ] = Field(description="the field that is a list of the options, or one field for each of them")
    labels: str | None = Field(
        default=None,
        min_length=1,
        description="field of the list of labels, one for each option; left out: A, B, C, ...",
    )
    answer: str | None = Field(
        default=None, min_length=1, description="field of what names the right option"
    )
    id: str | None = Field(
        default=None,
        min_length=1,
        description="field of a name that no other row has; left out: made from the position",
    )


class Choices(Files):
    """Questions of which one option is right, named in the prompt by A, B, C, ..."""

    source: Literal["choices"] = Field(description="questions with options, of files as for `rows`")
    fields: ChoiceFields = Field(description="where a row of the files has what")
    answer: Literal["label", "index", "first"] = Field(
        default="label",
        description="how the right option is named: by its label; by its number, from 0; or it is "
        "the first of them, and `fields` has no `answer`",
    )
    shuffle: Seed | None = Field(
        default=None,
        description="seed of the order of the options, which the question alone decides beside it; "
        "null: as in the file",
    )
    template: str = Field(
        default="{prompt}\n{options}",
        description="the prompt; `{prompt}` stands for the question, `{options}` for lines such as "
        "`A. text`",
    )
    rows: Positive | None = Field(
        default=None, description="rows of the files; another number is an error; null: any"
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        _check_places("template", self.template, "{prompt}", "{options}")
        if (self.answer == "first") != (self.fields.answer is None):
            raise ValueError(
                "fields.answer: names the field of the right option; leave it out if, and only "
                "if, answer is first"
            )
        if self.answer == "first" and self.shuffle is None:
            raise ValueError("shuffle: is missing; with answer first A would always be right")
        if self.answer == "first" and self.fields.labels:
            raise ValueError("fields.labels: do nothing with answer first; remove the key")
        return self


def _iso(value: Any) -> Any:
    """Turn a date, as YAML reads one that is not quoted, into text."""
    return value.isoformat() if type(value) is date else value


def _existing(value: str) -> str:
    try:
        known = date.fromisoformat(value).isoformat() == value  # and not 20240801
    except ValueError:
        known = False
    if not known:
        raise ValueError(f"{value!r} is not a day; write it as 2024-08-01")
    return value


Day = Annotated[str, BeforeValidator(_iso), AfterValidator(_existing)]


class Programs(Files):
    """Problems that are solved by a program, with the tests that it has to pass."""

    source: Literal["programs"] = Field(
        description="problems to be programmed, of files as for `rows`"
    )
    form: Literal["livecodebench", "deepcoder"] = Field(
        description="whose fields the files have: LiveCodeBench (its code_generation_lite) or "
        "DeepCoder (its Preview-Dataset)"
    )
    start_date: Day | None = Field(
        default=None, description="first day of the contests (`livecodebench`); null: any"
    )
    end_date: Day | None = Field(
        default=None,
        description="last day of the contests (`livecodebench`), of which only what has no time of "
        "day or midnight counts, as with LiveCodeBench's own option; null: any",
    )
    template: str = Field(
        default="{prompt}",
        description="the prompt of a problem whose program reads standard input; `{prompt}` stands "
        "for the problem",
    )
    starter_template: str = Field(
        default="{prompt}\n{starter_code}",
        description="the prompt of a problem with starter code, for which `{starter_code}` stands",
    )
    max_tests: Positive | None = Field(
        default=None,
        description="keep this many tests of a problem, those with the longest inputs; null: all",
    )
    max_test_bytes: Bytes | None = Field(
        default=None,
        description="bytes that the tests of a problem have together at most: the longest come "
        "first, and those are kept that fit in; null: any",
    )
    drop_unanswered: bool = Field(
        default=False,
        description="leave out and count problems without usable tests, or of which none fits into "
        "`max_test_bytes`; otherwise they are an error",
    )
    rows: Positive | None = Field(
        default=None,
        description="problems of the files in the window; another number is an error; null: any",
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        _check_places("template", self.template, "{prompt}")
        _check_places("starter_template", self.starter_template, "{prompt}", "{starter_code}")
        days = [day for day in (self.start_date, self.end_date) if day]
        if days and self.form != "livecodebench":
            raise ValueError("start_date, end_date: need form livecodebench; remove them")
        if days != sorted(days):
            raise ValueError(f"end_date: {self.end_date} is before start_date {self.start_date}")
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


# What is read from files.
Published = Rows | Choices | Programs | Union
# `config/datasets/NAME.yaml`: prompts to train on.
Dataset = Annotated[Chain | Rows | Choices | Programs | Union, Field(discriminator="source")]


class Column(Strict):
    """What a benchmark has beside its rows."""

    label: Label = Field(description="column head in tables and figures")
    version: Positive = Field(
        description="raise it, and the rows are made anew, and all that was made from them"
    )
    samples: Positive = Field(description="K, responses per problem")
    temperature: Temperature | None = Field(
        default=None, description="sampling temperature; null: the study's"
    )
    top_p: TopP | None = Field(default=None, description="nucleus sampling mass; null: the study's")
    max_response_tokens: Positive | None = Field(
        default=None, description="responses are cut here; null: where the study says"
    )
    verifier: Verifier = Field(description="what decides on a response")

    @model_validator(mode="after")
    def _fitting_verifier(self) -> Self:
        known = verifiers_of(self)
        if self.verifier not in known:
            raise ValueError(
                f"verifier: {self.verifier!r} does not fit this source; write {' or '.join(known)}"
            )
        return self


class ChainBenchmark(Column, Chain):
    """Held-out prompts of the generator."""


class RowsBenchmark(Column, Rows):
    """Rows of published files."""


class ChoicesBenchmark(Column, Choices):
    """Questions with options."""


class ProgramsBenchmark(Column, Programs):
    """Problems to be programmed."""


# `config/benchmarks/NAME.yaml`: one column of the tables.
Benchmark = Annotated[
    ChainBenchmark | RowsBenchmark | ChoicesBenchmark | ProgramsBenchmark,
    Field(discriminator="source"),
]


def verifiers_of(data: Strict) -> tuple[Verifier, ...]:
    """Return the verifiers that can judge responses to a set of prompts."""
    if isinstance(data, Programs):
        return ("code",)
    if isinstance(data, Choices):
        return ("choice",)
    return ("strict_box", "math_verify")
