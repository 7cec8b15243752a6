r"""The character-level tokenizer: 20 tokens, ``\boxed{`` is one of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from respo.cli import UserError
from respo.files import read_json

PAD, EOS, BOX = "<pad>", "<eos>", "\\boxed{"
VOCABULARY = [PAD, EOS, BOX, "}", *"0123456789+-*=;,"]


@dataclass(frozen=True)
class Tokenizer:
    """A Hugging Face tokenizer with the two special tokens that sampling needs.

    Attributes:
        backend: the tokenizer of ``tokenizer.json``.
        config: ``tokenizer_config.json``.
    """

    backend: Backend
    config: dict[str, Any]
    pad_id: int
    eos_id: int

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; no special tokens are added, and none is read from the text.

        Raises:
            UserError: a character is not in the vocabulary.
        """
        try:
            return self.backend.encode(text, add_special_tokens=False).ids
        except Exception as error:  # tokenizers raises nothing narrower
            unknown = next((c for c in text if self.backend.token_to_id(c) is None), "")
            raise UserError(
                f"{text!r}: {unknown!r} is not in the tokenizer's vocabulary ({error})"
            ) from None

    def decode(self, ids: list[int]) -> str:
        """Text of token ids without special tokens."""
        return self.backend.decode(ids, skip_special_tokens=True)


def character_tokenizer() -> Tokenizer:
    """Make the tokenizer of the arithmetic tasks."""
    # No unknown token: what is not in the vocabulary is an error, never something else.
    backend = Backend(models.WordLevel({token: i for i, token in enumerate(VOCABULARY)}))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"\\boxed\{|."), "isolated")
    backend.decoder = decoders.Fuse()
    backend.add_special_tokens([PAD, EOS])
    config = {
        "eos_token": EOS,
        "pad_token": PAD,
        "padding_side": "left",
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    return _tokenizer(backend, config, "the character tokenizer")


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read ``tokenizer.json`` and ``tokenizer_config.json``.

    Raises:
        UserError: one of them is missing or damaged, or names no padding or end token.
    """
    path = folder / "tokenizer.json"
    read_json(path)  # one message for a missing or broken file
    try:
        backend = Backend.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise UserError(f"{path}: not a tokenizer ({error}). Delete it and make it anew.") from None
    path = folder / "tokenizer_config.json"
    return _tokenizer(backend, read_json(path), str(path))


def _tokenizer(backend: Backend, config: dict[str, Any], where: str) -> Tokenizer:
    # Prompts are data: a special token's text in one is text, not the token.
    backend.encode_special_tokens = True
    ids = []
    for key in ("pad_token", "eos_token"):
        token = config.get(key)
        text = token["content"] if isinstance(token, dict) else token
        number = None if text is None else backend.token_to_id(text)
        if number is None:
            raise UserError(f"{where}: {key} is {text!r}; name a token of tokenizer.json")
        ids.append(number)
    return Tokenizer(backend, config, *ids)
