"""`python -m respo.training.local.warm_start`: the initial weights that the runs of a model share.

Random weights, then supervised steps on demonstrations of the task: the loss is the mean negative
log-probability of the response's tokens, the end-of-sequence token included. AdamW(0.9, 0.95),
weight decay 0.01, gradient clip 1; 50 steps of linear warm-up, then a cosine down to a tenth of the
peak rate. Written: ``weights/`` in Hugging Face format and, last, ``initial.json``. A second start
waits for the first and has nothing to do when the weights of its inputs are there.

Two threads share the micro-batches of a step, since all runs wait for this one job. Gradients are
added in a fixed order: the result does not depend on the threads.
"""

import argparse
import dataclasses
import math
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor

from respo.cli import UserError, command
from respo.config import load_initial_config
from respo.config.schema import InitialConfig, WarmStart
from respo.data import chain
from respo.environment import environment
from respo.files import sha256_of, write_record
from respo.policy import Policy, Tokenizer, create_policy, policy_hash, save_policy, token_log_probs
from respo.training.local.device import check_device, device_name
from respo.training.local.initial import RECORD, WEIGHTS, is_made
from respo.training.local.optimizer import AdamW
from respo.training.local.progress import Progress
from respo.training.local.prompts import Prompt, Prompts, load_prompts
from respo.training.lock import exclusive

BETAS = (0.9, 0.95)
WEIGHT_DECAY = 0.01
GRADIENT_CLIP = 1.0
WARMUP_STEPS = 50
FINAL_RATE = 0.1
MICRO_BATCH_ROWS = 16
THREADS = 2

# Token ids of a prompt and of a response to it.
Pair = tuple[list[int], list[int]]


@command
def main() -> None:
    """Parse the command line and make the weights."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.training.local.warm_start", description=__doc__
    )
    parser.add_argument("--config", type=Path, required=True, help="config.yaml of the weights")
    parser.add_argument("--data", type=Path, required=True, help="training set (Parquet)")
    parser.add_argument("--out", type=Path, required=True, help="folder for initial.json, weights/")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:1")
    options = parser.parse_args()
    config = load_initial_config(options.config)
    check_device(options.device)
    torch.set_num_threads(1)
    inputs = {"config_sha256": sha256_of(options.config), "data_sha256": sha256_of(options.data)}

    def tell_waiting(holder: str) -> None:
        print(f"{options.out}: is being made by {holder}; waiting for it", file=sys.stderr)

    with exclusive(options.out / ".lock", tell_waiting, lambda: None):
        if is_made(options.out, inputs):
            print(f"{options.out}: the initial weights are made already", file=sys.stderr)
        else:
            make(config, inputs, options)


def make(config: InitialConfig, inputs: dict[str, str], options: argparse.Namespace) -> None:
    """Draw the weights, train them and write them."""
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
    save_policy(policy, options.out / WEIGHTS)
    write_record(
        options.out / RECORD,
        {
            **inputs,
            "weights_sha256": policy_hash(options.out / WEIGHTS),
            "steps": model.warm_start.steps,
            "loss": loss,
            "seconds": time.perf_counter() - start,
            "device": device_name(options.device),
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
    with ThreadPoolExecutor(THREADS) as pool:
        for step in range(settings.steps):
            batch = prompts.take(step * settings.batch, settings.batch, settings.seed)
            pairs = demonstrations(batch, policy.tokenizer, settings, rng)
            loss, gradient = supervised_gradient(optimizer, pairs, pool)
            if not math.isfinite(loss):
                raise UserError(
                    f"{name}: step {step + 1}: the loss is {loss}; a lower "
                    f"warm_start.learning_rate may help"
                )
            rate = learning_rate(step, settings.steps, settings.learning_rate)
            optimizer.step(gradient, optimizer.norm(gradient), rate)
            progress.tell(step + 1, f"loss {loss:.3f}")
    return optimizer.policy, loss


def demonstrations(
    batch: list[Prompt], tokenizer: Tokenizer, settings: WarmStart, rng: random.Random
) -> list[Pair]:
    """Write a response for each prompt; token ids of prompt and response."""
    pairs = []
    for prompt in batch:
        text = chain.demonstration(prompt.text, rng, settings.direct, settings.corrupted)
        pairs.append((prompt.ids, [*tokenizer.encode(text), tokenizer.eos_id]))
    return pairs


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Rate of a step (from 0): linear warm-up times a cosine from 1 down to a tenth."""
    cosine = (1 + math.cos(math.pi * step / steps)) / 2
    return peak * min(1.0, (step + 1) / WARMUP_STEPS) * (FINAL_RATE + (1 - FINAL_RATE) * cosine)


def supervised_gradient(
    optimizer: AdamW, pairs: list[Pair], pool: ThreadPoolExecutor
) -> tuple[float, Tensor]:
    """Return the mean negative log-probability of the response tokens, nats, and its gradient."""
    # Rows of similar length go together, so that little is computed for padding.
    pairs = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))
    tokens = sum(len(response) for _, response in pairs)

    def part(start: int) -> tuple[float, Tensor]:
        loss = supervised_loss(optimizer.policy, pairs[start : start + MICRO_BATCH_ROWS]) / tokens
        return loss.item(), optimizer.gradient(loss)

    # map returns in order, whichever thread is done first.
    losses, gradients = zip(*pool.map(part, range(0, len(pairs), MICRO_BATCH_ROWS)), strict=True)
    return sum(losses), torch.stack(gradients).sum(0)


def supervised_loss(policy: Policy, pairs: list[Pair]) -> Tensor:
    """Return the summed negative log-probability of the response tokens, nats, differentiably."""
    width = max(len(prompt) + len(response) for prompt, response in pairs)
    padding = [policy.tokenizer.pad_id] * width
    rows = [(prompt + response + padding)[:width] for prompt, response in pairs]
    mask_BT = torch.zeros((len(pairs), width - 1), dtype=torch.bool)
    for row, (prompt, response) in enumerate(pairs):
        mask_BT[row, len(prompt) - 1 : len(prompt) + len(response) - 1] = True
    log_prob_BT, _ = token_log_probs(policy, torch.tensor(rows, device=policy.device), 1.0)
    return -torch.where(mask_BT.to(policy.device), log_prob_BT, 0.0).sum()


if __name__ == "__main__":
    main()
