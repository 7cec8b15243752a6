"""Runs of the models for verl, made from YAML files as those of a study are, and CPUs for them."""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import pytest
import torch
import yaml

from respo.config import Run, load_study

CONFIG = Path(__file__).parents[3] / "config"
HERE = Path(__file__).parent
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
ON_A_CPU = [
    "trainer.device=cpu",
    "data.dataloader_num_workers=0",
    "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
    f"{ACTOR}.use_torch_compile=False",
    f"{ACTOR}.fsdp_config.use_torch_compile=False",
    f"{ROLLOUT}.enforce_eager=True",
    f"+{ROLLOUT}.enable_sleep_mode=False",
    f"{ROLLOUT}.free_cache_engine=False",
    f"{ROLLOUT}.max_num_seqs=64",
    f"{ROLLOUT}.load_format=auto",
    f"{ROLLOUT}.agent.num_workers=1",
    f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes=16",
    "reward.num_workers=1",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
    "ray_kwargs.ray_init.num_cpus=16",
    "+ray_kwargs.ray_init.num_gpus=1",
    "+ray_kwargs.ray_init.include_dashboard=False",
]
# Of Megatron, and mbridge switches them on.
WITH_CUDA = (
    "persist_layer_norm",
    "masked_softmax_fusion",
    "bias_activation_fusion",
    "bias_dropout_fusion",
    "moe_grouped_gemm",
)
ENVIRONMENT = {
    "VERL_USE_EXTERNAL_MODULES": "cpu_platform,cpu_vllm,respo.training.verl.plugin",
    "VERL_PLATFORM": "cpu",
    "VERL_ENGINE_DEVICE": "cuda",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "TORCH_COMPILE_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "HYDRA_FULL_ERROR": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@pytest.fixture
def verl_study(tmp_path):
    """Return a function that loads a study of models for verl, with some keys changed."""
    config = Path(shutil.copytree(CONFIG, tmp_path / "config"))
    study = yaml.safe_load((config / "studies" / "tiny.yaml").read_text())
    # The dense half of the ReSPO study.
    study |= {
        "models": ["qwen3-1.7b-base"],
        "methods": ["respo"],
        "staleness": [8],
        "seeds": [3],
        "extra_runs": [],
        "updates": 1024,
        "mini_batch": 32,
        "checkpoints": [256, 512, 768, 1024],
        "optimizer": {
            "learning_rate": 1e-6,
            "warmup_updates": 51,
            "betas": [0.9, 0.95],
            "weight_decay": 0.1,
            "gradient_clip": 1.0,
        },
    }
    study["evaluation"]["updates"] = [1024]

    def load(model_changes=None, **changes):
        values = study | changes
        (config / "studies" / "cluster.yaml").write_text(yaml.safe_dump(values))
        for name in values["models"] if model_changes else ():
            path = config / "models" / f"{name}.yaml"
            model = yaml.safe_load(path.read_text())
            for key, value in model_changes.items():
                *outer, last = key.split(".")
                target = model
                for part in outer:
                    target = target[part]
                target[last] = value
            path.write_text(yaml.safe_dump(model))
        return load_study(config, "cluster")

    load.config = config
    return load


@pytest.fixture
def verl_run(verl_study):
    """Return a function that makes one run and the resources of its model."""

    def make(model="qwen3-1.7b-base", method="respo", staleness=8, **changes):
        resolved = verl_study(models=[model], methods=[method], staleness=[staleness], **changes)
        run = resolved.run_config(Run(model, method, staleness, 3), "")
        return run, resolved.models[model].resources

    return make


@pytest.fixture(scope="session")
def cpu_options():
    """Options with which `main_ppo` runs on a CPU; of two settings of an option the last counts."""
    # Not in pytest's folder: names of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="ray"))
    yield [*ON_A_CPU, f"+ray_kwargs.ray_init._temp_dir={folder}"]
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def megatron_on_a_cpu():
    """Options with which Megatron trains on a CPU."""
    transformer = f"{ACTOR}.megatron.override_transformer_config"
    switched_off = [f"+{transformer}.{each}=False" for each in WITH_CUDA]
    return [*switched_off, f"{transformer}.attention_backend=local"]


@pytest.fixture(scope="session")
def megatron_options(cpu_options, megatron_on_a_cpu):
    """Like `cpu_options`, for models that Megatron trains."""
    return [option for option in cpu_options if "torch_compile" not in option] + megatron_on_a_cpu


@pytest.fixture(scope="session")
def local_update():
    """Return the class of `local_update.py`."""
    spec = importlib.util.spec_from_file_location("local_update", HERE / "local_update.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LocalUpdate


@pytest.fixture(scope="session")
def cpu_environment():
    """Return the variables that go with `cpu_options`."""
    path = os.pathsep.join((str(HERE), os.environ.get("PYTHONPATH", "")))
    return os.environ | ENVIRONMENT | {"PYTHONPATH": path}


TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)


@pytest.fixture(scope="session")
def save_tiny_model():
    """Return a function that saves a Qwen3 with random weights, to be trained by verl on a CPU.

    verl wants a tokenizer of Qwen's kind, and vLLM's attention on CPUs heads of 32 features.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    def save(folder, mixture_of_experts=False):
        special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
        words = [*special, "\n", *map(chr, range(32, 127))]
        numbers = {word: index for index, word in enumerate(words)}
        characters = Tokenizer(models.WordLevel(numbers, unk_token=" "))
        characters.pre_tokenizer = pre_tokenizers.Split(pattern="", behavior="isolated")
        characters.decoder = decoders.Fuse()
        PreTrainedTokenizerFast(
            tokenizer_object=characters,
            eos_token="<|im_end|>",
            pad_token="<|endoftext|>",
            additional_special_tokens=["<|im_start|>"],
            chat_template=TEMPLATE,
        ).save_pretrained(folder)
        sizes = {
            "vocab_size": len(words),
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "max_position_embeddings": 1024,
            "tie_word_embeddings": False,
            "eos_token_id": 2,
            "pad_token_id": 0,
            "bos_token_id": None,
        }
        if mixture_of_experts:
            experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
            config = AutoConfig.for_model("qwen3_moe", **sizes, **experts, norm_topk_prob=True)
        else:
            config = AutoConfig.for_model("qwen3", **sizes)
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config)
        # Also the row of the padding token, which transformers makes zero: its gradient, through
        # the norm of a zero vector, is hundreds of times that of the others, and random responses
        # have such tokens. (transformers gives this row no gradient, Megatron does.)
        torch.nn.init.normal_(model.get_input_embeddings().weight, std=0.02)
        model.to(torch.bfloat16).save_pretrained(folder)

    return save
