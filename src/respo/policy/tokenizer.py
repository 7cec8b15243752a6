r"""The character-level tokenizer: 20 tokens, ``\boxed{`` is one of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers


@dataclass(frozen=True)
class Tokenizer:
    """A Hugging Face tokenizer with the two special tokens that sampling needs.

    Attributes:
        backend: the tokenizer of ``tokenizer.json``.
        config: ``tokenizer_config.json``.
    """

    backend: tokenizers.Tokenizer
    config: dict[str, Any]

    @property
    def pad_id(self) -> int:
        """Id of the padding token."""
        raise NotImplementedError

    @property
    def eos_id(self) -> int:
        """Id of the end-of-sequence token."""
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, no special tokens added.

        Raises:
            UserError: a character is not in the vocabulary.
        """
        raise NotImplementedError

    def decode(self, ids: list[int]) -> str:
        """Text of token ids without special tokens."""
        raise NotImplementedError


def character_tokenizer() -> Tokenizer:
    """Make the tokenizer of the arithmetic tasks."""
    raise NotImplementedError


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read ``tokenizer.json`` and ``tokenizer_config.json``."""
    raise NotImplementedError
