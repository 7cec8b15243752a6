"""A miniature study in a checkout of its own: every stage of the real one, in under a minute.

`python tests/mini.py FOLDER` makes the checkout; snakemake --config study=mini runs it. In tests,
the fixture `mini` is this module.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
STUDY = {
    "title": "Miniature",
    "methods": ["grpo", "respo"],
    "models": ["mini"],
    "staleness": [2],
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
    "evaluation": {"updates": [4], "temperature": 1.0, "top_p": 0.7, "seed": 0},
    "tables": ["respo/table1"],
    "figures": ["respo/fig3"],
}
# It learns to box a digit, which is right one time in ten, and nothing else.
WARM_START = {"steps": 60, "batch": 16, "learning_rate": 0.01, "direct": 1.0}
BENCHMARKS = {
    "easy": {"label": "easy", "operators": [1, 2], "rows": 10, "samples": 2},
    "hard": {"label": "hard", "operators": [3, 4], "rows": 10, "samples": 2},
}
# What the tests of faults break: N = 1 and 2, and Math-Verify, whose worker processes are to be
# killed too.
FAULTS = {
    "staleness": [1, 2],
    "tables": ["respo/table1", "respo/table6"],
    "figures": ["respo/fig1", "respo/fig3"],
}
FAULTS_BENCHMARKS = {"easy": BENCHMARKS["easy"] | {"verifier": "math_verify"}}


def copy_project(folder: Path) -> Path:
    """Copy what snakemake needs; return the folder of the configuration."""
    for name in ("workflow", "config", "profiles", "envs"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "Snakefile", folder)
    return folder / "config"


def add_study(
    config: Path,
    warm_start: dict[str, Any] = WARM_START,
    benchmarks: dict[str, dict[str, Any]] = BENCHMARKS,
    **study: Any,
) -> None:
    """Add the study `mini`, its model and its benchmarks to a folder of configuration.

    Args:
        config: the folder.
        warm_start: what differs from qwen3-tiny's.
        benchmarks: what differs from chain-easy, by name.
        study: what differs from `STUDY`.
    """
    write(config / "studies/mini.yaml", STUDY | {"benchmarks": [*benchmarks]} | study)
    model = read(ROOT / "config/models/qwen3-tiny.yaml")
    model["architecture"] |= {"hidden_size": 32, "num_hidden_layers": 1, "head_dim": 16}
    model["warm_start"] |= warm_start
    write(config / "models/mini.yaml", model | {"max_response_tokens": 24})
    easy = read(ROOT / "config/benchmarks/chain-easy.yaml")
    for name, benchmark in benchmarks.items():
        write(config / f"benchmarks/{name}.yaml", easy | benchmark)


def read(path: Path) -> dict[str, Any]:
    """Read a file of the configuration."""
    return yaml.safe_load(path.read_text())


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file of the configuration."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python tests/mini.py", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the checkout is made")
    add_study(copy_project(parser.parse_args().folder), benchmarks=FAULTS_BENCHMARKS, **FAULTS)
