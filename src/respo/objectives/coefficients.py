"""From log-ratios to coefficients: the one entry to all objectives."""

from collections.abc import Callable

import torch
from torch import Tensor

from respo.objectives import registry
from respo.objectives.ratios import EXPONENTS, as_mask, clamp_exponent, count_clamped


@torch.no_grad()
def coefficients(
    name: str,
    log_ratio_BT: Tensor,
    advantage_B: Tensor,
    mask_BT: Tensor,
    old_log_prob_BT: Tensor | None = None,
    *,
    entropy_BT: Tensor | None = None,
    batch_sums: Tensor | None = None,
    **parameters: float | None,
) -> Tensor:
    """Return the coefficient c of every token, detached.

    Args:
        name: the objective, one of `objective_names()`.
        log_ratio_BT: log pi - log pi_old in nats, float32 or float64. Masked positions may hold
            anything; NaN at a valid token comes out as NaN.
        advantage_B: one advantage per response.
        mask_BT: 1 at the tokens of the response, 0 elsewhere; bool, int or float.
        old_log_prob_BT: log pi_old in nats, for the objectives that depend on it.
        entropy_BT: entropy of pi at each token in nats, for the objectives that depend on it.
        batch_sums: what `batch_sums` returned for the micro-batches of the mini-batch, added up,
            for the objectives that depend on it. Left out: the rows given are the mini-batch.
        parameters: of the objective; the published defaults where left out.

    Returns:
        c, shape (B, T), dtype of `log_ratio_BT`, exactly 0 at masked tokens.

    Raises:
        ValueError: unknown objective or parameter, a value outside its range, or tensors whose
            shape or dtype does not fit.
    """
    objective = registry.get(name)
    values = registry.check_parameters(name, parameters)
    tensors = _Tensors(name, log_ratio_BT, advantage_B, mask_BT, old_log_prob_BT, entropy_BT)
    if objective.sums is not None:
        if batch_sums is None:
            batch_sums = tensors.apply(objective.sums, objective.sums_inputs, values)
        tensors.inputs["batch_sums"] = _check_sums(name, batch_sums)
    elif batch_sums is not None:
        raise ValueError(f"{name} takes no batch_sums")
    coefficient = tensors.apply(objective.function, objective.inputs, values)
    rows, width = log_ratio_BT.shape
    fits = isinstance(coefficient, Tensor) and coefficient.is_floating_point()
    if not fits or coefficient.shape not in ((rows, width), (rows, 1)):
        raise ValueError(
            f"objective {name}: it must return real numbers of shape (B, T) or (B, 1), here "
            f"{(rows, width)} or {(rows, 1)}, not {_told(coefficient)}"
        )
    return torch.where(tensors.mask_BT, coefficient.to(log_ratio_BT.dtype), 0.0)


@torch.no_grad()
def batch_sums(
    name: str,
    log_ratio_BT: Tensor,
    advantage_B: Tensor,
    mask_BT: Tensor,
    old_log_prob_BT: Tensor | None = None,
    *,
    entropy_BT: Tensor | None = None,
    **parameters: float | None,
) -> Tensor | None:
    """Return the sums that an objective needs over the whole mini-batch, None if it needs none.

    They add up over micro-batches and ranks; hand the total to `coefficients`. Arguments and
    errors as there.

    Returns:
        A float64 vector whose length and meaning are the objective's own.
    """
    objective = registry.get(name)
    values = registry.check_parameters(name, parameters)
    if objective.sums is None:
        return None
    tensors = _Tensors(name, log_ratio_BT, advantage_B, mask_BT, old_log_prob_BT, entropy_BT)
    return _check_sums(name, tensors.apply(objective.sums, objective.sums_inputs, values))


@torch.no_grad()
def clamped_exponents(name: str, log_ratio_BT: Tensor, mask_BT: Tensor) -> int:
    """Return how often the clamp before exp bites in this objective.

    Counted are tokens for a token-level objective and responses for a sequence-level one.
    Arguments and errors as in `coefficients`.
    """
    mask_BT = _check(log_ratio_BT, mask_BT)
    wanted = [key for key in registry.get(name).inputs if key in EXPONENTS]
    return sum(count_clamped(EXPONENTS[key](log_ratio_BT, mask_BT)) for key in wanted)


class _Tensors:
    """The tensors of a mini-batch under the names that objectives ask for."""

    def __init__(
        self,
        name: str,
        log_ratio_BT: Tensor,
        advantage_B: Tensor,
        mask_BT: Tensor,
        old_log_prob_BT: Tensor | None,
        entropy_BT: Tensor | None,
    ) -> None:
        mask_BT = _check(log_ratio_BT, mask_BT)
        if advantage_B.shape != log_ratio_BT.shape[:1]:
            raise ValueError(
                f"advantage_B has shape {tuple(advantage_B.shape)}, expected ({len(log_ratio_BT)},)"
            )
        self.name = name
        self.mask_BT = mask_BT
        self.log_ratio_BT = log_ratio_BT
        self.given = {"old_log_prob_BT": old_log_prob_BT, "entropy_BT": entropy_BT}
        self.inputs = {
            "mask_BT": mask_BT,
            "advantage_B1": advantage_B.to(log_ratio_BT.dtype).unsqueeze(1),
        }

    def apply(
        self,
        function: Callable[..., Tensor],
        wanted: tuple[str, ...],
        parameters: dict[str, float | None],
    ) -> Tensor:
        """Call a function of an objective with the inputs that it wants, each made when needed.

        Raises:
            ValueError: it has changed one of them, which may be the caller's own.
        """
        inputs = [self._input(key) for key in wanted]
        versions = [_version(tensor) for tensor in inputs]
        result = function(*inputs, **parameters)
        for key, tensor, version in zip(wanted, inputs, versions, strict=True):
            if _version(tensor) != version:
                raise ValueError(
                    f"objective {self.name}: it changes {key} in place; leave its inputs as they "
                    f"are"
                )
        return result

    def _input(self, key: str) -> Tensor:
        if key not in self.inputs:
            self.inputs[key] = self._make(key)
        return self.inputs[key]

    def _make(self, key: str) -> Tensor:
        if key in EXPONENTS:
            return clamp_exponent(EXPONENTS[key](self.log_ratio_BT, self.mask_BT))
        if key == "log_prob_BT":
            log_ratio_BT = torch.where(self.mask_BT, self.log_ratio_BT, 0.0)
            return self._input("old_log_prob_BT") + log_ratio_BT
        tensor = self.given[key]
        if tensor is None or tensor.shape != self.log_ratio_BT.shape:
            raise ValueError(f"{self.name} needs {key} with the shape of log_ratio_BT")
        return torch.where(self.mask_BT, tensor, 0.0)


def _check_sums(name: str, sums: Tensor) -> Tensor:
    if getattr(sums, "dtype", None) != torch.float64 or sums.dim() != 1:
        raise ValueError(
            f"objective {name}: sums over the mini-batch are a float64 vector, not {_told(sums)}"
        )
    return sums


def _version(tensor: Tensor) -> int | None:
    """Return torch's count of changes in place; under `inference_mode` there is none."""
    return None if tensor.is_inference() else tensor._version


def _told(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return repr(value)


def _check(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    # bfloat16 is spaced by 0.8 % at 1, coarser than a sequence-level clip range.
    if log_ratio_BT.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"log_ratio_BT must be float32 or float64, not {log_ratio_BT.dtype}")
    return as_mask(mask_BT, log_ratio_BT.shape)
