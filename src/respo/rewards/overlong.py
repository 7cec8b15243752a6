"""The soft length penalty of DAPO, used for the 30B model of the ReSPO study (its Appendix D.1)."""


def overlong_penalty(tokens: int, max_tokens: int, buffer: int, factor: float) -> float:
    """Return the penalty, zero or negative, to be added to a response's score.

    Zero up to ``max_tokens - buffer`` tokens, from there linear, ``-factor`` at ``max_tokens``.

    Args:
        tokens: length of the response in tokens.
        max_tokens: the response limit.
        buffer: how many tokens before the limit the penalty begins.
        factor: the size of the penalty at the limit.

    Raises:
        ValueError: the buffer is not between 1 and ``max_tokens``.
    """
    if not 0 < buffer <= max_tokens:
        raise ValueError(f"the buffer must lie between 1 and {max_tokens} tokens, not {buffer}")
    return min(0.0, (max_tokens - buffer - tokens) / buffer * factor)
