"""Sampling responses: shared prefill, a static cache, finished rows dropped."""

from dataclasses import dataclass

from torch import Tensor

from respo.policy.weights import Policy


@dataclass(frozen=True)
class Samples:
    """Responses; T is ``max_new_tokens``, B the number of prompts times the group size.

    Attributes:
        tokens_BT: int64, the end-of-sequence token included, padding after it.
        log_prob_BT: float32 nats, under the temperature but before top-p; 0 at padding.
        length_B: int64, tokens, the end-of-sequence token included.
        truncated_B: bool, no end-of-sequence token within the limit.
        routes_LBSK: chosen experts by position in the right-padded sequence of prompt and response
            (S = longest prompt + T), fit for `forward`; None unless recorded.
    """

    tokens_BT: Tensor
    log_prob_BT: Tensor
    length_B: Tensor
    truncated_B: Tensor
    routes_LBSK: Tensor | None


def sample(
    policy: Policy,
    prompts: list[list[int]],
    group_size: int,
    max_new_tokens: int,
    uniform_BT: Tensor,
    *,
    temperature: float = 1.0,
    top_p: float = 1.0,
    record_routes: bool = False,
) -> Samples:
    """Sample ``group_size`` adjacent responses per prompt.

    All randomness is in ``uniform_BT`` in [0, 1): token t of row b is the inverse of the cumulative
    distribution at ``uniform_BT[b, t]``, so a row depends on its own numbers only.
    """
    raise NotImplementedError
