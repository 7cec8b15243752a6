r"""The strict-box verifier, the training reward of the ReSPO study (its Appendix D.1).

The rule, and all of it: of the last 100 characters of a response take the last ``\boxed{...}``; the
reward is +1 if what stands between its braces is the ground truth, character by character, and -1
otherwise. Nothing is normalised: ``\boxed{ 33 }`` and ``\boxed{033}`` are not ``33``.

Where the source leaves room:

1. It cuts the response to 300 characters and then to 100; only the second cut can be seen.
2. ``\{`` and ``\}`` do not count as braces, so ``\boxed{[0, 1\}}`` has an answer.
3. If the last box is never closed there is no answer, even if an earlier box is complete.
4. A box that begins before the last 100 characters is not seen.
"""

WINDOW = 100
_BOX = "\\boxed{"


def boxed_answer(response: str) -> str | None:
    """Return the content of the last box in the last 100 characters, or None."""
    return last_box(response[-WINDOW:])


def last_box(text: str) -> str | None:
    """Return the content of the last box of a text, or None."""
    start = text.rfind(_BOX)
    if start < 0:
        return None
    content = text[start + len(_BOX) :]
    depth, position = 1, 0
    while position < len(content):
        character = content[position]
        if character == "\\":
            position += 1  # the next character is escaped: \{ \} \\ open and close nothing
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return content[:position]
        position += 1
    return None


def strict_box(response: str, answer: str) -> float:
    """Return +1.0 if the boxed answer is exactly ``answer``, else -1.0."""
    return 1.0 if boxed_answer(response) == answer else -1.0
