"""Questions with options in the project's schema: the answer is a letter of the prompt."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from respo.cli import UserError
from respo.config.schema import Choices
from respo.data import fields
from respo.data.records import Record, records
from respo.data.rows import Reading, Row, check_count

# As many as `respo.rewards.choice` reads out of a response.
LETTERS = ascii_uppercase[:10]
PLACES = re.compile(r"\{(prompt|options)\}")


def read_choices(config: Choices, files: Sequence[Path]) -> Reading:
    """Read the questions of files, in order.

    Args:
        config: what each field means and what the files must hold.
        files: the files themselves.

    Raises:
        UserError: a file or a row of it cannot be used, or there are not as many rows as expected;
            the text names file and line or row, and the remedy.
    """
    reading = Reading()
    where = config.fields
    named = [where.prompt, *where.options, where.labels, where.answer, where.id]
    columns = [name.partition(".")[0] for name in named if name]
    for file in files:
        for record in records(file, columns):
            try:
                reading.add(_row(config, record, reading.read))
            except ValueError as error:
                raise UserError(f"{record.place}: {error}; mend the row or change fields") from None
            reading.read += 1
    check_count(files, config.rows, reading.read, len(reading.rows))
    return reading


def _row(config: Choices, record: Record, position: int) -> Row:
    where, values = config.fields, record.values
    question = fields.question(fields.field(values, where.prompt))
    name = fields.name(fields.field(values, where.id)) if where.id else f"row-{position:05d}"
    options = _options(values, where.options)
    right = _right(config, values, len(options))
    if config.shuffle is not None:
        # Where the order is the file's own, the letter that it names is the published one.
        if options.count(options[right]) > 1:
            raise ValueError(f"the right option {options[right]!r} stands twice")
        seed = f"{config.shuffle}\n{question}\n"
        order = sorted(range(len(options)), key=lambda index: _digest(seed + options[index]))
        options, right = [options[index] for index in order], order.index(right)
    lines = "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=False))
    parts = {"prompt": question, "options": lines}
    prompt = PLACES.sub(lambda place: parts[place[1]], config.template)
    return Row(name, prompt, LETTERS[right], record.place)


def _options(values: dict[str, Any], names: Sequence[str]) -> list[str]:
    found = [fields.field(values, name) for name in names]
    options = found[0] if len(names) == 1 else found
    if not isinstance(options, list) or not all(isinstance(text, str) for text in options):
        raise ValueError("the options are not a list of texts")
    if not 2 <= len(options) <= len(LETTERS):
        raise ValueError(f"there are {len(options)} options, not 2 to {len(LETTERS)}")
    options = [" ".join(text.split()) for text in options]  # each is one line of the prompt
    if not all(options):
        raise ValueError("an option is empty")
    "".join(options).encode()  # halves of surrogate pairs end here
    return options


def _right(config: Choices, values: dict[str, Any], count: int) -> int:
    """Return the position of the right option."""
    where = config.fields
    if where.answer is None:
        return 0
    answer = fields.field(values, where.answer)
    if config.answer == "index":
        if isinstance(answer, bool) or not re.fullmatch("[0-9]{1,2}", str(answer)):
            raise ValueError(f"the answer {answer!r} is not the number of an option")
        if int(answer) >= count:
            raise ValueError(f"the answer is option {answer}, from 0, and there are {count}")
        return int(answer)
    labels = fields.field(values, where.labels) if where.labels else list(LETTERS[:count])
    texts = [_label(label) for label in labels] if isinstance(labels, list) else []
    if len(texts) != count or None in texts or len(set(texts)) != count:
        raise ValueError(f"the labels {labels!r} are not one for each of {count} options")
    if _label(answer) not in texts:
        raise ValueError(
            f"the answer {answer!r} is none of the labels {', '.join(map(str, texts))}"
        )
    return texts.index(_label(answer))


def _label(value: Any) -> str | None:
    """Return a label as text; None if it is neither a text nor an integer."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _digest(text: str) -> bytes:
    """Return what the order of options follows: neither row, id nor version of Python matter."""
    return hashlib.sha256(text.encode()).digest()
