"""The chat template of a published model: a prompt as the one message of a user."""

import hashlib
from pathlib import Path
from typing import Any

from respo.cli import UserError


class Chat:
    """Turns prompts into token ids, with an open turn of the model at the end."""

    def __init__(self, tokenizer: Any, thinking: bool | None):
        """Wrap a tokenizer of transformers that has a chat template.

        Args:
            tokenizer: the model's.
            thinking: `enable_thinking` of the template; None leaves it to the template.
        """
        self.tokenizer = tokenizer
        self.options = {} if thinking is None else {"enable_thinking": thinking}

    @staticmethod
    def messages(prompt: str) -> list[dict[str, str]]:
        """The chat that a prompt stands for."""
        return [{"role": "user", "content": prompt}]

    def encode(self, prompt: str) -> list[int]:
        """Token ids of the whole chat.

        Raises:
            UserError: the template cannot be used.
        """
        # Comes with transformers, and is as slow to load.
        from jinja2 import TemplateError

        try:
            text = self.tokenizer.apply_chat_template(
                self.messages(prompt),
                add_generation_prompt=True,
                tokenize=False,
                **self.options,
            )
        except (TemplateError, TypeError) as error:
            raise UserError(
                f"{self.tokenizer.name_or_path}: its chat template fails on a prompt "
                f"({type(error).__name__}: {error}); name another checkpoint, or a copy of this "
                f"one with a chat_template.jinja that works"
            ) from None
        # The template writes special tokens itself, that of the beginning too.
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    @property
    def template_sha256(self) -> str:
        """Hash of the template's text."""
        return hashlib.sha256(self.tokenizer.get_chat_template().encode()).hexdigest()


def load_chat(folder: Path, thinking: bool | None) -> Chat:
    """Read the tokenizer of a checkpoint and its chat template.

    Raises:
        UserError: one of them is missing or damaged.
    """
    # Imported here: transformers takes seconds to load.
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{folder}: no tokenizer can be read ({reason})") from None
    if not tokenizer.chat_template:
        raise UserError(
            f"{folder}: the tokenizer has no chat template, and prompts go through it; add a "
            f"chat_template.jinja or name another checkpoint"
        )
    return Chat(tokenizer, thinking)
