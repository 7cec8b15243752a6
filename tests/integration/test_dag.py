"""What snakemake would run, counted in process, without running it."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from snakemake.api import SnakemakeApi
from snakemake.exceptions import MissingRuleException
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
)

from respo.config import load_study

ROOT = Path(__file__).parents[2]
STUDY = load_study(ROOT / "config", "tiny").study
CELL = "results/tiny/qwen3-tiny/{method}/N{n}/seed1/eval/{checkpoint}/{benchmark}/cell.json"

# snakemake leaves its own files and event loops open.
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]


def jobs(workdir, *targets, root=ROOT, **config):
    """Return how many jobs of each rule make the targets."""
    quiet = OutputSettings(dryrun=True, quiet={Quietness.ALL})
    with SnakemakeApi(quiet) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(config=config),
            snakefile=root / "Snakefile",
            workdir=workdir,
        )
        dag = workflow.dag(dag_settings=DAGSettings(targets=set(targets)))
        dag.execute_workflow(executor="dryrun")
        needed = workflow._workflow.dag.needrun_jobs(exclude_finished=False)
        return Counter(job.rule.name for job in needed)


def rule_name(kind, id_):
    return f"{kind}_{id_.replace('/', '_')}"


def test_the_default_study(tmp_path):
    # 4 methods x 3 staleness x 2 seeds and 2 on-policy runs; these and a baseline on 3 benchmarks.
    assert jobs(tmp_path) == {
        "all": 1,
        "study": 1,
        "data_config": 4,
        "data": 4,
        "initial_config": 1,
        "warm_start": 1,
        "run_config": 26,
        "train_local": 26,
        "baseline": 1,
        "generate_local": 81,
        "score": 81,
        "cell": 81,
        **{rule_name("table", id_): 1 for id_ in STUDY.tables},
        **{rule_name("figure", id_): 1 for id_ in STUDY.figures},
        "explore": 1,
        "report": 1,
    }


def test_one_cell_needs_one_run(tmp_path):
    target = CELL.format(method="respo", n=32, checkpoint=128, benchmark="chain-hard")
    assert jobs(tmp_path, target) == {
        "data_config": 2,
        "data": 2,
        "initial_config": 1,
        "warm_start": 1,
        "run_config": 1,
        "train_local": 1,
        "generate_local": 1,
        "score": 1,
        "cell": 1,
    }


@pytest.mark.parametrize("id_", ["respo/fig1", "aspo/fig4"])
def test_figures_of_objectives_need_no_training(tmp_path, id_):
    rule = rule_name("figure", id_)
    assert jobs(tmp_path, f"results/tiny/figures/{id_}.png") == {"study": 1, rule: 1}


def test_a_figure_needs_the_runs_that_it_shows(tmp_path):
    # The ratios of the 24 runs with N > 1, not the two on-policy ones; nothing is evaluated.
    found = jobs(tmp_path, "results/tiny/figures/aspo/fig3.png")
    assert found["train_local"] == 24
    assert "generate_local" not in found


def test_results_may_lie_elsewhere(tmp_path):
    assert jobs(tmp_path, "elsewhere/tiny/study.yaml", results="elsewhere") == {"study": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 64}, "grpo/N64/seed1: study 'tiny' has no such run"),
        ({"checkpoint": 100}, "update 100 of .*/N32/seed1 has no checkpoint; there are 64, 128"),
    ],
)
def test_a_cell_outside_the_grid_is_refused_in_one_message(tmp_path, change, message):
    known = {"method": "grpo", "n": 32, "checkpoint": 128, "benchmark": "chain-hard"}
    with pytest.raises(SystemExit, match=message):
        jobs(tmp_path, CELL.format(**known | change))


@pytest.mark.parametrize(
    "change",
    [
        {"benchmark": "aime25"},  # not a benchmark of the study
        {"method": "reinforce"},
        {"n": "032"},  # another name of a run that there is
    ],
)
def test_a_path_that_names_nothing_is_refused(tmp_path, change):
    known = {"method": "grpo", "n": 32, "checkpoint": 128, "benchmark": "chain-hard"}
    with pytest.raises(MissingRuleException):
        jobs(tmp_path, CELL.format(**known | change))


def test_a_baseline_needs_no_run(tmp_path):
    target = "results/tiny/qwen3-tiny/baseline/N0/seed0/eval/0/chain-hard/cell.json"
    assert jobs(tmp_path, target) == {
        "data_config": 2,
        "data": 2,
        "initial_config": 1,
        "warm_start": 1,
        "baseline": 1,
        "generate_local": 1,
        "score": 1,
        "cell": 1,
    }


def checkout(folder):
    root = folder / "checkout"
    for name in ("workflow", "config", "envs"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "Snakefile", root)
    return root


def test_weights_that_are_not_there(tmp_path):
    root = checkout(tmp_path)
    path = root / "config" / "models" / "qwen3-1.7b-base.yaml"
    model = yaml.safe_load(path.read_text()) | {"checkpoint": {"path": "weights"}}
    path.write_text(yaml.safe_dump(model))
    path = root / "config" / "studies" / "tiny.yaml"
    path.write_text(
        yaml.safe_dump(yaml.safe_load(path.read_text()) | {"baselines": ["qwen3-1.7b-base"]})
    )
    with pytest.raises(SystemExit, match=r"base\.yaml: checkpoint\.path: weights: no such folder"):
        jobs(tmp_path, "results/tiny/study.yaml", root=root)
    (tmp_path / "weights").mkdir()
    assert jobs(tmp_path, "results/tiny/study.yaml", root=root) == {"study": 1}


def test_a_run_of_verl(tmp_path):
    root = checkout(tmp_path)
    path = root / "config" / "studies" / "tiny.yaml"
    path.write_text(
        yaml.safe_dump(
            yaml.safe_load(path.read_text())
            | {"models": ["qwen3-1.7b-base"], "baselines": ["qwen3-1.7b-base"]}
        )
    )
    cell = "results/tiny/qwen3-1.7b-base/{run}/eval/{update}/chain-hard/cell.json"
    of_baseline = {
        "data_config": 1,
        "data": 1,
        "initial_config": 1,
        "published": 1,
        "baseline": 1,
        "generate_vllm": 1,
        "score": 1,
        "cell": 1,
    }
    assert jobs(tmp_path, cell.format(run="baseline/N0/seed0", update=0), root=root) == of_baseline
    del of_baseline["baseline"]
    assert jobs(tmp_path, cell.format(run="respo/N8/seed1", update=128), root=root) == {
        **of_baseline,
        "data_config": 2,
        "data": 2,
        "run_config": 1,
        "train_verl": 1,
    }
