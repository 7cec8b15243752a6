"""Gradients against verl's own policy losses on random tensors, where verl is installed (0.9.1).

Which of them are the same objective, and with which numbers:

===========  ==================  ===============================================================
verl         here                verl's numbers
===========  ==================  ===============================================================
`vanilla`    `grpo`              `clip_ratio_c` is `dual_clip`; it cannot be switched off
`gspo`       `gspo`              every token carries s; averages like any other
`sapo`       `sapo`              averages seq-mean-token-mean, whatever it is told
`cispo`      `cispo`             the clip is 1 - low, 1 + high, as here
`dppo_tv`    `dppo_tv`           `clip_ratio_low/high` is `delta_*`, `clip_ratio_c` `ratio_cap`
`gpg`        `grpo_no_is`        no ratio at all
===========  ==================  ===============================================================
"""

import importlib.util
import warnings

import numpy as np
import pytest
import torch

from respo.objectives import group_advantages

if importlib.util.find_spec("verl") is None:
    pytest.skip("verl is not installed", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from verl.trainer.ppo.core_algos import (
        compute_grpo_outcome_advantage,
        compute_grpo_vectorized_outcome_advantage,
        get_policy_loss_fn,
    )
    from verl.workers.config import FSDPActorConfig

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


def verl_gradient(batch, loss_mode, aggregation, **options):
    config = FSDPActorConfig(
        strategy="fsdp2",
        rollout_n=4,
        ppo_micro_batch_size_per_gpu=1,
        global_batch_info={
            "dp_size": 1,
            "batch_num_tokens": int(batch.mask_BT.sum()),
            "global_batch_size": len(batch.mask_BT),
            "loss_scale_factor": batch.max_response_tokens,
        },
        **options,
    )
    log_prob_BT = batch.log_prob_BT.clone().requires_grad_()
    loss, _ = get_policy_loss_fn(loss_mode)(
        old_log_prob=batch.old_BT,
        log_prob=log_prob_BT,
        advantages=batch.advantage_B.unsqueeze(1).expand_as(batch.old_BT),
        response_mask=batch.mask_BT,
        loss_agg_mode=aggregation,
        config=config,
    )
    loss.backward()
    return log_prob_BT.grad


def clips(low, high, cap=3.0):
    return {"clip_ratio_low": low, "clip_ratio_high": high, "clip_ratio_c": cap}


NEVER = 1e9  # a dual clip that no ratio reaches
AVERAGES = ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm")


@pytest.mark.parametrize("aggregation", AVERAGES)
@pytest.mark.parametrize(
    ("loss_mode", "options", "name", "parameters", "spread"),
    [
        ("vanilla", clips(0.2, 0.2, NEVER), "grpo", {}, 0.3),
        ("vanilla", clips(0.2, 0.28), "grpo", {"epsilon_high": 0.28, "dual_clip": 3.0}, 1.5),
        ("gspo", clips(3e-4, 4e-4), "gspo", {}, 1e-3),
        ("gspo", clips(0.2, 0.3), "gspo", {"epsilon_low": 0.2, "epsilon_high": 0.3}, 1.0),
        ("cispo", clips(1.0, 4.0), "cispo", {}, 1.5),
        ("cispo", clips(0.2, 0.3), "cispo", {"epsilon_low": 0.2, "epsilon_high": 0.3}, 0.3),
        ("dppo_tv", clips(0.15, 0.15, 20.0), "dppo_tv", {}, 0.5),
        (
            "dppo_tv",
            clips(0.05, 0.1, 1.2),
            "dppo_tv",
            {"delta_low": 0.05, "delta_high": 0.1, "ratio_cap": 1.2},
            0.5,
        ),
    ],
)
def test_gradient_equals_verl(lab, loss_mode, options, name, parameters, spread, aggregation):
    batch = lab.make_batch(spread=spread)
    theirs = verl_gradient(batch, loss_mode, aggregation, **options)
    ours = lab.loss_gradient(batch, name, aggregation, **parameters)
    # verl adds 1e-8 to the number of tokens in seq-mean-token-mean.
    assert_same(ours, theirs, 1e-7 if aggregation == "seq-mean-token-mean" else 1e-12)


@pytest.mark.parametrize("parameters", [{}, {"tau_pos": 2.0, "tau_neg": 0.5}])
def test_sapo_equals_verl(lab, parameters):
    batch = lab.make_batch(spread=1.0)
    theirs = verl_gradient(batch, "sapo", "token-mean", **parameters)
    ours = lab.loss_gradient(batch, "sapo", "seq-mean-token-mean", **parameters)
    assert_same(ours, theirs, 1e-7)


def test_no_importance_sampling_equals_verls_gpg(lab):
    batch = lab.make_batch()
    assert_same(
        lab.loss_gradient(batch, "grpo_no_is"), verl_gradient(batch, "gpg", "token-mean"), 1e-12
    )


def assert_same(ours, theirs, tolerance):
    assert theirs.abs().max() > 0
    worst = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    assert worst < tolerance


def test_some_tokens_are_clipped_in_these_batches(lab):
    batch = lab.make_batch(spread=1.5)
    gradient = verl_gradient(batch, "vanilla", "token-mean", **clips(0.2, 0.28))
    valid = gradient[batch.mask_BT & (batch.advantage_B != 0).unsqueeze(1)]
    assert 0 < (valid == 0).float().mean() < 1
    torch.testing.assert_close(
        gradient[~batch.mask_BT], torch.zeros(()).double().expand(int((~batch.mask_BT).sum()))
    )


@pytest.mark.parametrize(
    ("estimator", "step", "tolerance"),
    [
        (compute_grpo_outcome_advantage, 1.0, 1e-12),
        (compute_grpo_outcome_advantage, 1e-5, 1e-9),  # a real spread, however small
        # This one computes in float32, which knows 1.00001 to one part in a hundred of the step.
        (compute_grpo_vectorized_outcome_advantage, 1.0, 1e-6),
        (compute_grpo_vectorized_outcome_advantage, 1e-5, 2e-2),
    ],
)
def test_advantages_equal_verls(estimator, step, tolerance):
    reward_B = 1 + step * torch.arange(8, dtype=torch.float64)
    theirs_BT, _ = estimator(
        reward_B.unsqueeze(1), torch.ones(8, 1, dtype=torch.float64), np.repeat([0, 1], 4)
    )
    assert_same(group_advantages(reward_B, 4), theirs_BT[:, 0].double(), tolerance)
