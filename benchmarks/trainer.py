"""A policy update of the local trainer and of TRL's GRPOTrainer.

Both train in one process on one thread, in turns of some rollout batches: GRPO, N = 8, M = 8
prompts x G = 8 responses, from the same warm-started weights of the default architecture, on the
same prompts and reward, with the same optimizer settings and limit on response length. The first
rollout batch of each turn warms up and is not counted. Sampling, forward and backward passes,
optimizer and metrics count; loading and saving do not. Responses are sampled, so the numbers of
tokens differ a little: therefore time per token stands beside time per update.
"""

import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.race import Row, Taken, compare, main
from respo import objectives
from respo.config.schema import RunConfig
from respo.data import chain
from respo.policy import Policy, create_policy, load_policy, save_policy
from respo.rewards import strict_box
from respo.training.local.prompts import Prompt, Prompts
from respo.training.local.trainer import Trainer
from respo.training.local.warm_start import warm_start

STALENESS, PROMPTS, GROUP = 8, 8, 8
MAX_PROMPT, MAX_RESPONSE = 18, 64


def rows(quick: bool) -> Iterator[Row]:
    import trl  # before any work: it may be missing

    rounds, batches, steps = (1, 1, 2) if quick else (3, 3, 300)
    torch.set_num_threads(1)
    config = run_config(updates=STALENESS * (1 + batches))
    distinct = chain.distinct_prompts(1, 8, 2048, seed=0, held_out=False)
    start = config.model.warm_start.model_copy(update={"steps": steps})
    policy = create_policy(config.model.architecture, MAX_PROMPT + MAX_RESPONSE, seed=0)
    encode = policy.tokenizer.encode
    prompts = Prompts([Prompt(text, encode(text), chain.answer(text)) for text in distinct], 0)
    policy, _ = warm_start(policy, prompts, start, "warm start")
    ours: list[Taken] = []
    theirs: list[Taken] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        save_policy(policy, folder / "weights")
        for number in range(rounds):
            fresh = load_policy(folder / "weights")
            ours.append(run_ours(folder / f"run{number}", config, fresh, prompts))
            theirs.append(run_trl(folder / f"trl{number}", config, folder / "weights", prompts))
    peer = f"TRL {trl.__version__}"
    by_update = [
        [each._replace(work=STALENESS * batches) for each in taken] for taken in (ours, theirs)
    ]
    yield compare("policy update", "ms", by_update[0], peer, by_update[1])
    yield compare("response token of it", "us", ours, peer, theirs)


def run_ours(run: Path, config: RunConfig, policy: Policy, prompts: Prompts) -> Taken:
    trainer = Trainer(run, config, policy, prompts, {})
    marks = []
    for update in range(config.training.updates + 1):
        if update % STALENESS == 0:
            marks.append((time.process_time(), time.perf_counter(), trainer.tokens))
        if update < config.training.updates:
            trainer.step()
    (cpu, wall, tokens), last = marks[1], marks[-1]
    return Taken(last[0] - cpu, last[1] - wall, last[2] - tokens)


def run_trl(folder: Path, config: RunConfig, weights: Path, prompts: Prompts) -> Taken:
    warnings.filterwarnings("ignore")
    transformers.utils.logging.set_verbosity_error()
    import datasets
    import trl

    tokenizer = transformers.AutoTokenizer.from_pretrained(weights)
    model = transformers.AutoModelForCausalLM.from_pretrained(weights)
    special = [tokenizer.pad_token, tokenizer.eos_token]

    def reward(completions: list[str], answer: list[str], **_: Any) -> list[float]:
        for token in special:
            completions = [text.replace(token, "") for text in completions]
        return list(map(strict_box, completions, answer))

    marks: dict[int, tuple[float, float]] = {}

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            marks[state.global_step] = (time.process_time(), time.perf_counter())

    training = config.training
    rows = prompts.take(0, len(prompts.rows), config.seed)
    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=trl.GRPOConfig(
            output_dir=str(folder),
            per_device_train_batch_size=PROMPTS * GROUP,
            gradient_accumulation_steps=1,
            steps_per_generation=STALENESS,
            num_generations=GROUP,
            max_completion_length=MAX_RESPONSE,
            temperature=training.temperature,
            top_k=0,
            beta=0.0,
            loss_type="bnpo",  # the mean over the tokens of the mini-batch
            epsilon=0.2,
            learning_rate=training.optimizer.learning_rate,
            lr_scheduler_type="constant",
            weight_decay=0.0,
            max_grad_norm=training.optimizer.gradient_clip,
            max_steps=training.updates,
            logging_steps=STALENESS,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
            seed=0,
            shuffle_dataset=False,
        ),
        train_dataset=datasets.Dataset.from_dict(
            {"prompt": [row.text for row in rows], "answer": [row.answer for row in rows]}
        ),
        processing_class=tokenizer,
        callbacks=[Clock()],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    first, last = STALENESS, training.updates
    (cpu, wall), end = marks[first], marks[last]
    lengths = [
        log["completions/mean_length"]
        for log in trainer.state.log_history
        if log.get("step", 0) > first and "completions/mean_length" in log
    ]
    tokens = sum(lengths) * PROMPTS * GROUP * (last - first) / len(lengths)
    return Taken(end[0] - cpu, end[1] - wall, tokens)


def run_config(updates: int) -> RunConfig:
    return RunConfig.model_validate(
        {
            "model": {
                "backend": "local",
                "architecture": {
                    "model_type": "qwen3",
                    "hidden_size": 64,
                    "num_hidden_layers": 2,
                    "num_attention_heads": 4,
                    "num_key_value_heads": 2,
                    "head_dim": 32,
                    "intermediate_size": 128,
                },
                "warm_start": {
                    "data": "chain",
                    "steps": 900,
                    "batch": 64,
                    "learning_rate": 4e-3,
                    "direct": 0.5,
                    "corrupted": 0.1,
                    "seed": 0,
                },
                "max_prompt_tokens": MAX_PROMPT,
                "max_response_tokens": MAX_RESPONSE,
            },
            "objective": {"objective": "grpo", "parameters": {}},
            "objective_code": objectives.code_hash("grpo"),
            "staleness": STALENESS,
            "seed": 1,
            "training": {
                "updates": updates,
                "mini_batch": PROMPTS,
                "rollouts_per_prompt": GROUP,
                "temperature": 1.0,
                "loss_aggregation": "token-mean",
                "optimizer": {
                    "learning_rate": 2e-4,
                    "warmup_updates": 0,
                    "betas": [0.9, 0.999],
                    "weight_decay": 0.0,
                    "gradient_clip": 1.0,
                },
                "checkpoints": [updates],
            },
            "train_data": {"source": "chain", "operators": [1, 8], "rows": 2048, "seed": 0},
        }
    )


if __name__ == "__main__":
    main(rows, __doc__)
