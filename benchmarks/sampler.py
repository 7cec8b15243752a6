"""Tokens per second of the sampler and of transformers' ``generate``.

Both run in one process, in turns, on one thread, on the default architecture with the same random
weights, chain prompts and limit on new tokens. Only tokens up to the end of a response count, for
both. Once with responses that end (1 token in 20 ends one) and once without, where dropping
finished rows and stopping early gain nothing.
"""

import dataclasses
import functools
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import transformers

from benchmarks.race import Row, Taken, compare, main, race, timed
from respo.config.schema import Architecture
from respo.policy import Policy, create_policy, sample, save_policy

MAX_NEW_TOKENS, GROUP, ROUNDS = 64, 8, 5
NEVER = 10**6  # no token of the vocabulary


def rows(quick: bool) -> Iterator[Row]:
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    policy = default_policy()
    with tempfile.TemporaryDirectory() as folder:
        save_policy(policy, Path(folder) / "policy")
        model = transformers.AutoModelForCausalLM.from_pretrained(Path(folder) / "policy").eval()
    endless = dataclasses.replace(policy.tokenizer, eos_id=NEVER)
    for name, sampled in (
        ("responses end", policy),
        ("none ends", dataclasses.replace(policy, tokenizer=endless)),
    ):
        model.generation_config.eos_token_id = sampled.tokenizer.eos_id
        for batch in (16,) if quick else (64, 512):
            prompts = chain_prompts(sampled, batch // GROUP)
            runs = {
                "ours": functools.partial(run_ours, sampled, prompts),
                "theirs": functools.partial(run_transformers, model, sampled, prompts),
            }
            taken = race(
                {key: functools.partial(seeded, run) for key, run in runs.items()},
                1 if quick else ROUNDS,
            )
            what = f"{name}, {batch} at a time"
            peer = "transformers generate"
            yield compare(what, "tokens/s", taken["ours"], peer, taken["theirs"])


def seeded(run: Callable[[], int]) -> Taken:
    torch.manual_seed(0)
    return timed(run)


def default_policy() -> Policy:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 128}
    return create_policy(Architecture(model_type="qwen3", **sizes), max_positions=128, seed=0)


def chain_prompts(policy: Policy, count: int) -> list[list[int]]:
    draw = random.Random(0)

    def text() -> str:
        operators = range(draw.randint(1, 8))
        rest = "".join(draw.choice("+-*") + str(draw.randint(0, 9)) for _ in operators)
        return f"{draw.randint(0, 9)}{rest}="

    return [policy.tokenizer.encode(text()) for _ in range(count)]


def run_ours(policy: Policy, prompts: list[list[int]]) -> int:
    uniform_BT = torch.rand(len(prompts) * GROUP, MAX_NEW_TOKENS)
    return int(sample(policy, prompts, GROUP, MAX_NEW_TOKENS, uniform_BT).length_B.sum())


def run_transformers(
    model: transformers.PreTrainedModel, policy: Policy, prompts: list[list[int]]
) -> int:
    width = max(map(len, prompts))
    pad = policy.tokenizer.pad_id
    ids = torch.tensor([[pad] * (width - len(prompt)) + prompt for prompt in prompts])
    generated = model.generate(
        ids,
        attention_mask=(ids != pad).long(),
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        num_return_sequences=GROUP,
        max_new_tokens=MAX_NEW_TOKENS,
    )[:, width:]
    # A padding token before the end of a sequence is a sampled one.
    ended = (generated == policy.tokenizer.eos_id).cumsum(1)
    return int(((ended == 0) | ((ended == 1) & (generated == policy.tokenizer.eos_id))).sum())


if __name__ == "__main__":
    main(rows, __doc__)
