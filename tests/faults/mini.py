"""A miniature study in a checkout of its own: every stage of the real one, in under a minute.

`python tests/faults/mini.py FOLDER` makes the checkout; snakemake --config study=mini runs it.
"""

import argparse
import shutil
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
MINI = {
    "title": "Miniature",
    "methods": ["grpo", "respo"],
    "models": ["mini"],
    "staleness": [1, 2],
    "seeds": [1],
    "updates": 4,
    "mini_batch": 2,
    "rollouts_per_prompt": 4,
    "temperature": 1.0,
    "loss_aggregation": "token-mean",
    "optimizer": {
        "learning_rate": 0.001,
        "warmup_updates": 0,
        "betas": [0.9, 0.999],
        "weight_decay": 0.0,
        "gradient_clip": 1.0,
    },
    "checkpoints": [2, 4],
    "train_data": "chain",
    "benchmarks": ["easy"],
    "evaluation": {"updates": [4], "temperature": 1.0, "top_p": 0.7, "seed": 0},
    "tables": ["respo/table1", "respo/table6"],
    "figures": ["respo/fig1", "respo/fig3"],
}


def make_checkout(folder: Path) -> None:
    """Copy what snakemake needs and add the study `mini` to its configuration."""
    for name in ("workflow", "config", "profiles", "envs"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "Snakefile", folder)
    config = folder / "config"
    (config / "studies" / "mini.yaml").write_text(yaml.safe_dump(MINI))
    model = yaml.safe_load((config / "models" / "qwen3-tiny.yaml").read_text())
    model["architecture"] |= {"hidden_size": 32, "num_hidden_layers": 1, "head_dim": 16}
    model["warm_start"] |= {"steps": 40, "batch": 16, "learning_rate": 0.01, "direct": 1.0}
    model["max_response_tokens"] = 24
    (config / "models" / "mini.yaml").write_text(yaml.safe_dump(model))
    benchmark = yaml.safe_load((config / "benchmarks" / "chain-easy.yaml").read_text())
    # Math-Verify, not strict_box: its worker processes are to be killed too.
    benchmark |= {"label": "easy", "operators": [1, 2], "rows": 10, "samples": 2}
    benchmark["verifier"] = "math_verify"
    (config / "benchmarks" / "easy.yaml").write_text(yaml.safe_dump(benchmark))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python tests/faults/mini.py", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the checkout is made")
    make_checkout(parser.parse_args().folder)
