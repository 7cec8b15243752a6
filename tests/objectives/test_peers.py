"""Gradients against TRL's GRPOTrainer on random tensors, where TRL is installed (1.16 tried).

TRL's `bnpo` is GRPO with a token mean, `grpo` with a mean over responses, `dr_grpo` divides by
the response limit; its sequence level is GSPO; its `vespo` is VESPO, `sapo` SAPO with a mean over
responses, `cispo` CISPO with the cap itself as its parameter; its `delta` is the dual clip.
"""

import warnings
from types import SimpleNamespace

import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    import tokenizers
    import transformers

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

LIMIT = 12


@pytest.fixture(scope="module")
def trl_gradient(tmp_path_factory):
    """Gradient of TRL's loss, its model replaced by given log-probabilities."""
    vocabulary = {token: index for index, token in enumerate(["<pad>", "<eos>", "a"])}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, "a")),
        pad_token="<pad>",
        eos_token="<eos>",
    )
    model = transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(
            vocab_size=3,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            num_key_value_heads=1,
            head_dim=8,
        )
    )

    def gradient(batch, loss_type, level="token", **options):
        trainer = trl.GRPOTrainer(
            model=model,
            reward_funcs=lambda prompts, **_: [0.0] * len(prompts),
            args=trl.GRPOConfig(
                output_dir=str(tmp_path_factory.mktemp("trl")),
                loss_type=loss_type,
                importance_sampling_level=level,
                max_completion_length=LIMIT,
                per_device_train_batch_size=len(batch.mask_BT),
                num_generations=8,
                steps_per_generation=1,
                beta=0.0,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                report_to="none",
                **options,
            ),
            train_dataset=datasets.Dataset.from_dict({"prompt": ["a"] * 8}),
            processing_class=tokenizer,
        )
        log_prob_BT = batch.log_prob_BT.clone().requires_grad_()
        trainer._get_per_token_logps_and_entropies = lambda *_, **__: (
            log_prob_BT,
            torch.zeros_like(log_prob_BT),
            None,
        )
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.train()
        ids_BT = torch.ones_like(batch.mask_BT, dtype=torch.long)
        inputs = {
            "prompt_ids": ids_BT[:, :1],
            "prompt_mask": ids_BT[:, :1],
            "completion_ids": ids_BT,
            "completion_mask": batch.mask_BT.long(),
            "advantages": batch.advantage_B,
            "old_per_token_logps": batch.old_BT,
            "num_items_in_batch": batch.mask_BT.sum(),
        }
        trainer._compute_loss(trainer.model, inputs).backward()
        return log_prob_BT.grad

    return gradient


@pytest.mark.parametrize(
    ("loss_type", "level", "options", "name", "aggregation", "parameters", "spread"),
    [
        ("bnpo", "token", {"epsilon": 0.2}, "grpo", "token-mean", {}, 0.3),
        (
            "bnpo",
            "token",
            {"epsilon": 0.2, "epsilon_high": 0.28},
            "grpo",
            "token-mean",
            {"epsilon_high": 0.28},
            0.3,
        ),
        ("grpo", "token", {"epsilon": 0.2}, "grpo", "seq-mean-token-mean", {}, 0.3),
        ("dr_grpo", "token", {"epsilon": 0.2}, "grpo", "seq-mean-token-sum-norm", {}, 0.3),
        (
            "grpo",
            "sequence",
            {"epsilon": 3e-4, "epsilon_high": 4e-4},
            "gspo",
            "seq-mean-token-mean",
            {},
            1e-3,
        ),
        (
            "bnpo",
            "token",
            {"epsilon": 0.2, "delta": 1.5},
            "grpo",
            "token-mean",
            {"dual_clip": 1.5},
            1.0,
        ),
        ("sapo", "token", {}, "sapo", "seq-mean-token-mean", {}, 0.3),
        (
            "sapo",
            "token",
            {"sapo_temperature_pos": 0.5, "sapo_temperature_neg": 3.0},
            "sapo",
            "seq-mean-token-mean",
            {"tau_pos": 0.5, "tau_neg": 3.0},
            1.0,
        ),
        ("cispo", "token", {"epsilon_high": 5.0}, "cispo", "token-mean", {}, 1.5),
        (
            "cispo",
            "token",
            {"epsilon_high": 1.28},
            "cispo",
            "token-mean",
            {"epsilon_high": 0.28},
            0.3,
        ),
        ("vespo", "token", {}, "vespo", "token-mean", {}, 0.3),
        (
            "vespo",
            "token",
            {"vespo_k_pos": 1.5, "vespo_lambda_pos": 1.0, "vespo_k_neg": 2.5},
            "vespo",
            "token-mean",
            {"beta_pos": 1.5, "lambda_pos": 1.0, "beta_neg": 2.5},
            0.3,
        ),
    ],
)
def test_gradient_equals_trl(
    lab, trl_gradient, loss_type, level, options, name, aggregation, parameters, spread
):
    batch: SimpleNamespace = lab.make_batch(width=LIMIT, spread=spread)
    theirs = trl_gradient(batch, loss_type, level, **options)
    ours = lab.loss_gradient(batch, name, aggregation, **parameters)
    worst = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    print(f"{loss_type}/{level} against {name} {aggregation}: {worst:.1e}")
    # TRL holds SAPO's temperatures in float32: 1.05 is off by 2e-8.
    assert worst < (1e-7 if name == "sapo" else 1e-12)
