"""What samples responses: engines behind one small interface."""

import hashlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True)
class Sampling:
    """How responses are drawn."""

    temperature: float
    top_p: float
    max_response_tokens: int
    seed: int


class Request(NamedTuple):
    """A response that is wanted; ``prompt`` is token ids."""

    problem_id: str
    sample: int
    prompt: list[int]

    @property
    def key(self) -> tuple[str, int]:
        """The response's name."""
        return self.problem_id, self.sample


class Response(NamedTuple):
    """A response; ``response_tokens`` counts the end token, which ``response`` leaves out."""

    problem_id: str
    sample: int
    response: str
    response_tokens: int
    truncated: bool

    @property
    def key(self) -> tuple[str, int]:
        """The response's name."""
        return self.problem_id, self.sample


class Engine(Protocol):
    """Samples from one checkpoint.

    Attributes:
        positions: most tokens of a prompt and its response together.
        made_from: what responses depend on beside weights, prompts and sampling.
        versions: of the software that responses depend on.
    """

    positions: int
    made_from: dict[str, Any]
    versions: dict[str, str]

    def encode(self, prompt: str) -> list[int]:
        """Token ids of a prompt as the model sees it.

        Raises:
            UserError: the tokenizer does not know a character.
        """

    def sample(self, requests: list[Request], sampling: Sampling) -> Iterator[list[Response]]:
        """Yield the responses as they are finished, in any order; a list may be empty.

        The random numbers of a response come from `digest` alone.
        """


def digest(seed: int, problem_id: str, sample: int) -> bytes:
    """32 bytes that all randomness of a response derives from."""
    # The id comes last: whatever it contains, two different triples make different texts.
    return hashlib.sha256(f"{seed} {sample} {problem_id}".encode()).digest()


def sampler_code(*files: Path) -> str:
    """12 hex digits that identify the code of these files; comments and docstrings do not count."""
    # Imported here: it imports torch.
    from respo.objectives.formula import source_hash

    hashes = [
        f"{path.name} {source_hash(importlib.util.decode_source(path.read_bytes()))}"
        for path in sorted((Path(__file__), *files))
    ]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:12]
