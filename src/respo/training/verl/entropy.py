"""The entropy as a metric, without the memory that a gradient of it would take.

verl calculates the entropy with a gradient, also where its weight in the loss is 0: several copies
of the logits, 10 GB each for 16,384 tokens of a vocabulary of 151,936 in float32. Without a
gradient, and for some tokens at a time, it takes one of 0.3 GB.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

CHUNK_TOKENS = 512


@torch.no_grad()
def entropy(logits_TV: Tensor, chunk_size: int = CHUNK_TOKENS) -> Tensor:
    """Return the entropy of each row, nats, float32."""
    return torch.cat(
        [
            torch.logsumexp(chunk, dim=-1) - (chunk.softmax(dim=-1) * chunk).sum(dim=-1)
            for chunk in map(Tensor.float, logits_TV.split(chunk_size))
        ]
    )


@contextmanager
def without_gradient(engine: Any) -> Iterator[None]:
    """Have an engine of verl calculate the entropy without a gradient.

    For losses in which its weight is 0; our objectives take it as a constant.
    """
    if hasattr(engine, "compute_entropy_from_logits"):  # FSDP
        with _replaced(engine, "compute_entropy_from_logits", entropy):
            yield
        return
    module = sys.modules[type(engine).__module__]
    chunked = getattr(module, "vocab_parallel_entropy_with_chunking", None)  # Megatron
    if chunked is None:
        yield
        return

    @torch.no_grad()
    def parallel_entropy(logits_BTV: Tensor) -> Tensor:
        found: Tensor = chunked(logits_BTV, chunk_size=CHUNK_TOKENS)
        return found

    with _replaced(module, "vocab_parallel_entropy", parallel_entropy):
        yield


@contextmanager
def _replaced(thing: Any, name: str, value: Any) -> Iterator[None]:
    original = getattr(thing, name)
    setattr(thing, name, value)
    try:
        yield
    finally:
        setattr(thing, name, original)
