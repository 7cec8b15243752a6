"""`python -m respo.training.local.warm_start`: the initial weights that the runs of a model share.

Random weights, then supervised steps on demonstrations of the task: the loss is the mean negative
log-probability of the response's tokens, the end-of-sequence token included. AdamW(0.9, 0.95),
weight decay 0.01, gradient clip 1; 50 steps of linear warm-up, then a cosine down to a tenth of the
peak rate. Written: ``weights/`` in Hugging Face format and, last, ``initial.json``.
"""

import argparse
import dataclasses
import math
import random
import time
from pathlib import Path

import torch
from torch import Tensor

from respo.cli import UserError, command
from respo.config import load_initial_config
from respo.config.schema import WarmStart
from respo.data import chain
from respo.files import environment, sha256_of, write_json
from respo.policy import Policy, create_policy, policy_hash, save_policy, token_log_probs
from respo.training.local.device import check_device
from respo.training.local.optimizer import AdamW
from respo.training.local.progress import Progress
from respo.training.local.prompts import Prompts, load_prompts

BETAS = (0.9, 0.95)
WEIGHT_DECAY = 0.01
GRADIENT_CLIP = 1.0
WARMUP_STEPS = 50
FINAL_RATE = 0.1
MICRO_BATCH_ROWS = 16


@command
def main() -> None:
    """Parse the command line and make the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="config.yaml of the weights")
    parser.add_argument("--data", type=Path, required=True, help="training set (Parquet)")
    parser.add_argument("--out", type=Path, required=True, help="folder for initial.json, weights/")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:1")
    options = parser.parse_args()
    config = load_initial_config(options.config)
    check_device(options.device)
    torch.set_num_threads(1)
    start = time.perf_counter()
    model = config.model
    policy = create_policy(
        model.architecture,
        model.max_prompt_tokens + model.max_response_tokens,
        model.warm_start.seed,
    )
    weights = {name: tensor.to(options.device) for name, tensor in policy.weights.items()}
    policy = dataclasses.replace(policy, weights=weights)
    prompts = load_prompts(options.data, policy.tokenizer, model.max_prompt_tokens)
    name = "/".join(options.out.resolve().parts[-3:])
    policy, loss = warm_start(policy, prompts, model.warm_start, name)
    save_policy(policy, options.out / "weights")
    write_json(
        options.out / "initial.json",
        {
            "config_sha256": sha256_of(options.config),
            "data_sha256": sha256_of(options.data),
            "weights_sha256": policy_hash(options.out / "weights"),
            "steps": model.warm_start.steps,
            "loss": loss,
            "seconds": time.perf_counter() - start,
            "versions": environment("torch", "transformers", "safetensors"),
        },
    )


def warm_start(
    policy: Policy, prompts: Prompts, settings: WarmStart, name: str
) -> tuple[Policy, float]:
    """Take the supervised steps.

    Args:
        policy: random weights; left as they are.
        prompts: what the demonstrations are of, in shuffled epochs.
        settings: steps, batch, rate and kind of demonstrations.
        name: of the work, for the progress lines.

    Returns:
        The policy and the loss of the last step, nats per response token.

    Raises:
        UserError: the loss is not finite.
    """
    optimizer = AdamW(policy, betas=BETAS, weight_decay=WEIGHT_DECAY, clip=GRADIENT_CLIP)
    progress = Progress(name, "step", 0, settings.steps)
    rng = random.Random(settings.seed)
    loss = math.nan
    for step in range(settings.steps):
        batch = prompts.take(step * settings.batch, settings.batch, settings.seed)
        tokenizer = policy.tokenizer
        pairs = []
        for prompt in batch:
            response = chain.demonstration(prompt.text, rng, settings.direct, settings.corrupted)
            pairs.append((prompt.ids, [*tokenizer.encode(response), tokenizer.eos_id]))
        loss_tensor = supervised_loss(optimizer.policy, pairs)
        loss = loss_tensor.item()
        if not math.isfinite(loss):
            raise UserError(
                f"{name}: step {step + 1}: the loss is {loss}; a lower warm_start.learning_rate "
                f"may help"
            )
        gradient = optimizer.gradient(loss_tensor)
        rate = learning_rate(step, settings.steps, settings.learning_rate)
        optimizer.step(gradient, optimizer.norm(gradient), rate)
        progress.tell(step + 1, f"loss {loss:.3f}")
    return optimizer.policy, loss


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Rate of a step (from 0): linear warm-up times a cosine from 1 down to a tenth."""
    cosine = (1 + math.cos(math.pi * step / steps)) / 2
    return peak * min(1.0, (step + 1) / WARMUP_STEPS) * (FINAL_RATE + (1 - FINAL_RATE) * cosine)


def supervised_loss(policy: Policy, pairs: list[tuple[list[int], list[int]]]) -> Tensor:
    """Return the mean negative log-probability of the response tokens, nats.

    Args:
        policy: the policy; the loss is differentiable in its weights.
        pairs: token ids of prompt and response.
    """
    # Rows of similar length go together, so that little is computed for padding.
    pairs = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))
    total = torch.zeros((), device=policy.device)
    for start in range(0, len(pairs), MICRO_BATCH_ROWS):
        part = pairs[start : start + MICRO_BATCH_ROWS]
        width = len(part[-1][0]) + len(part[-1][1])
        pad = policy.tokenizer.pad_id
        rows = [prompt + response + [pad] * width for prompt, response in part]
        ids_BT = torch.tensor([row[:width] for row in rows], device=policy.device)
        mask_BT = torch.zeros((len(part), width - 1), dtype=torch.bool)
        for row, (prompt, response) in enumerate(part):
            mask_BT[row, len(prompt) - 1 : len(prompt) + len(response) - 1] = True
        log_prob_BT, _ = token_log_probs(policy, ids_BT, 1.0)
        total = total - torch.where(mask_BT.to(policy.device), log_prob_BT, 0.0).sum()
    return total / sum(len(response) for _, response in pairs)


if __name__ == "__main__":
    main()
