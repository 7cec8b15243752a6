"""What the coefficients do, as named sums that verl adds up over micro-batches and ranks.

respo/tokens                    valid tokens
respo/log_ratio                 sum of log pi - log pi_old over them, nats
respo/clamped                   exponents that the clamp before exp has changed
respo/tokens/pos                valid tokens of responses with A > 0 (`neg`: A < 0)
respo/clipped/pos               those whose coefficient is exactly 0
respo/coefficient/pos           sum of their coefficients
respo/responses/pos             responses with A > 0
respo/ratio/pos                 sum of their mean token ratios
respo/branch/responses/pos/3    responses with A > 0 whose log W falls into bin 3 of LOG_W_EDGES
respo/branch/tokens/pos/3       their tokens
respo/branch/coefficient_mass/pos/3  their sum of |A| * c (ReSPO, App. E.3)
"""

import torch
from torch import Tensor

from respo.objectives import SIGNS, branch_sums, clamped_exponents, coefficient_sums, ratio_sums
from respo.training.verl.mini_batch import Rows


def sums(name: str, rows: Rows, coefficient_BT: Tensor) -> dict[str, float]:
    """Return the sums over the responses of one micro-batch."""
    by_sign = coefficient_sums(coefficient_BT, rows.advantage_B, rows.mask_BT)
    by_sign |= ratio_sums(rows.advantage_B, rows.mask_BT, rows.log_ratio_BT)
    by_branch = branch_sums(coefficient_BT, rows.advantage_B, rows.mask_BT, rows.log_ratio_BT)
    named = {
        "respo/tokens": rows.mask_BT.sum(),
        "respo/log_ratio": rows.log_ratio_BT.double().sum(),
    }
    for key, value_2 in by_sign.items():
        named |= {f"respo/{key}/{sign}": value_2[row] for row, sign in enumerate(SIGNS)}
    for key, value_2N in by_branch.items():
        for row, sign in enumerate(SIGNS):
            named |= {
                f"respo/branch/{key}/{sign}/{column}": value
                for column, value in enumerate(value_2N[row])
            }
    # One copy from the device instead of one per number.
    values = torch.stack([value.double() for value in named.values()]).tolist()
    clamped = clamped_exponents(name, rows.log_ratio_BT, rows.mask_BT)
    return dict(zip(named, values, strict=True)) | {"respo/clamped": float(clamped)}
