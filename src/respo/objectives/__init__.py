"""Off-policy objectives, each defined by its coefficient.

With everything but log pi held fixed, the gradient of every objective here is

    grad J = (1/Z) * sum_i sum_t  c_it * A_i * grad log pi(o_it)

so an objective is a function that returns the coefficient c, and all of them share one loss
(`policy_loss`). Nothing is differentiated through exp, min or clip.

To add an objective, add one file to this folder with one function:

    @objective("name")
    def name(log_ratio_BT, advantage_B1, *, epsilon: NonNegative = 0.2): ...

Its positional arguments name the tensors that it wants (see `registry.objective`), its
keyword-only arguments are its parameters with their published defaults and allowed ranges.

Shapes: B responses, T tokens; `_B1` is one value per response that broadcasts over its tokens.
"""

import sys

from respo.objectives.advantages import group_advantages
from respo.objectives.coefficients import batch_sums, clamped_exponents, coefficients
from respo.objectives.diagnostics import (
    LOG_W_EDGES,
    SIGNS,
    branch_sums,
    coefficient_metrics,
    coefficient_sums,
    ratio_metrics,
    ratio_sums,
    sequence_log_weight,
)
from respo.objectives.formula import code_hash
from respo.objectives.loss import (
    AGGREGATIONS,
    entropy_bonus,
    kl_loss,
    policy_loss,
    token_weights,
)
from respo.objectives.one_token import kernel, surface
from respo.objectives.own import use_own
from respo.objectives.registry import (
    check_parameters,
    import_modules,
    is_sequence_level,
    needs,
    objective,
    objective_names,
    parameter_defaults,
)

__all__ = [
    "AGGREGATIONS",
    "LOG_W_EDGES",
    "SIGNS",
    "batch_sums",
    "branch_sums",
    "check_parameters",
    "clamped_exponents",
    "code_hash",
    "coefficient_metrics",
    "coefficient_sums",
    "coefficients",
    "entropy_bonus",
    "group_advantages",
    "is_sequence_level",
    "kernel",
    "kl_loss",
    "needs",
    "objective",
    "objective_names",
    "parameter_defaults",
    "policy_loss",
    "ratio_metrics",
    "ratio_sums",
    "sequence_log_weight",
    "surface",
    "token_weights",
    "use_own",
]

import_modules(sys.modules[__name__])
