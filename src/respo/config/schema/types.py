"""The types that keys of several files share."""

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Annotated, Any, Literal, TypeVar
from unicodedata import category

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

T = TypeVar("T", bound=Hashable)

# Embeddings, overrides and isolates of writing directions, and the mark of byte order.
DIRECTIONS = {*map(chr, chain(range(0x202A, 0x202F), range(0x2066, 0x206A), [0xFEFF]))}
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]*"


def repeated(values: Iterable[T]) -> T | None:
    """Return the first value that has stood before, None if there is none."""
    seen: set[T] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def _distinct(values: list[T]) -> list[T]:
    """Refuse a list that names something twice."""
    if (twice := repeated(values)) is not None:
        raise ValueError(f"{twice!r} stands twice; name each once")
    return values


def _scalar(value: Any) -> Any:
    """Refuse lists and mappings; the objective itself checks type and range."""
    if isinstance(value, list | dict):
        raise ValueError(f"{value!r} is not allowed; write a single value")
    return value


def _visible(text: str) -> str:
    """Refuse what commands a terminal, ends a line, or shows a text in another order."""
    refused = (c for c in text if category(c) in ("Cc", "Zl", "Zp") or c in DIRECTIONS)
    if hidden := next(refused, None):
        raise ValueError(f"holds the control character U+{ord(hidden):04X}; remove it")
    return text


Name = Annotated[
    str, Field(pattern=f"^{NAME_PATTERN}$", max_length=100, description="a file name without .yaml")
]
Names = Annotated[list[Name], Field(min_length=1), AfterValidator(_distinct)]
# Limits of numbers are far beyond anything sensible, and within what machines can hold: what
# passes them is a slip, and would fail after hours, or never.
MOST = 10**8
Positive = Annotated[int, Field(ge=1, le=MOST)]
WholeNumber = Annotated[int, Field(ge=0, le=MOST)]
# Layers and widths of a network.
Size = Annotated[int, Field(ge=1, le=10**6)]
Bytes = Annotated[int, Field(ge=1, le=10**12)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Counts = Annotated[list[Positive], Field(min_length=1), AfterValidator(_distinct)]
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(_distinct)]
# Tables and figures carry the papers' own numbers.
TableId = Literal[
    "respo/table1",
    "respo/table2",
    "respo/table3",
    "respo/table4",
    "respo/table5",
    "respo/table6",
    "respo/table7",
    "respo/table8",
    "respo/training",
    "aspo/table1",
    "aspo/table2",
    "aspo/table3",
    "aspo/table4",
    "maspo/table1",
    "maspo/table2",
    "maspo/table5",
    "maspo/table6",
    "maspo/table7",
]
FigureId = Literal[
    "respo/fig1",
    "respo/fig3",
    "respo/fig4",
    "respo/fig5",
    "respo/fig6",
    "aspo/fig2",
    "aspo/fig3",
    "aspo/fig4",
    "aspo/fig8",
    "maspo/fig3",
    "maspo/fig4",
    "maspo/fig8",
]
Fraction = Annotated[float, Field(ge=0, le=1)]
TopP = Annotated[float, Field(ge=1e-6, le=1)]
# Logits are divided by it.
Temperature = Annotated[float, Field(ge=0.001, le=100)]
LearningRate = Annotated[float, Field(ge=1e-12, le=1)]
PositiveFloat = Annotated[float, Field(ge=1e-9, le=1e9)]
# Far from where float32 overflows.
Coefficient = Annotated[float, Field(ge=0, le=1e6)]
Penalty = Annotated[float, Field(gt=0, le=1e6)]
# As many rounds as anybody would wait for.
Rounds = Annotated[int, Field(ge=0, le=1000)]
# One line of a table; matplotlib takes what stands between dollar signs for a formula.
Label = Annotated[
    str,
    Field(pattern=r"^[^\s$|]([^$|\n\r\t]*[^\s$|])?$", max_length=200),
    AfterValidator(_visible),
]
# One line, however long.
Line = Annotated[str, Field(min_length=1), AfterValidator(_visible)]
Verifier = Literal["strict_box", "math_verify", "choice", "code"]
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
