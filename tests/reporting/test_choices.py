from pathlib import Path

import pytest

from respo.config import load_study
from respo.reporting import choices, selection
from respo.reporting.methods import CONFIG

STUDIES = sorted(path.stem for path in (CONFIG / "studies").glob("*.yaml"))


def study(name):
    return load_study(CONFIG, name)


def shown(figure, name):
    """Models of a study and their methods in a figure."""
    found = {}
    for run in choices.CHOICES[figure].runs(study(name)):
        found.setdefault(run.model, set()).add(run.method)
    return found


@pytest.mark.parametrize("name", STUDIES)
def test_each_study_can_have_the_figures_that_it_names(name):
    resolved = study(name)
    for figure in resolved.study.figures:
        assert choices.refusal(figure, resolved) is None
        files = choices.inputs(figure, resolved, Path("f"))
        assert bool(files) != bool(choices.objectives(figure, resolved))
        assert len(set(files)) == len(files)


def test_dense_models_and_mixtures_have_a_figure_each():
    assert list(shown("respo/fig5", "respo")) == ["qwen3-1.7b-base"]
    assert list(shown("respo/fig6", "respo")) == ["qwen3-30b-a3b-base"]
    assert "respo-r3" in shown("respo/fig6", "respo")["qwen3-30b-a3b-base"]
    assert list(shown("respo/fig6", "tiny-moe")) == ["qwen3-tiny-moe"]
    needs = "needs runs of a mixture of experts, and the study has none"
    assert choices.refusal("respo/fig6", study("tiny")) == needs


def test_dual_clip():
    # ASPO, App. C: with and without it, on the one model that has both.
    assert shown("aspo/fig8", "aspo") == {"qwen3-4b": {"aspo", "aspo-no-dual-clip"}}
    assert shown("aspo/fig8", "tiny-methods") == {
        "qwen3-tiny": {"aspo", "aspo-no-dual-clip", "grpo", "grpo-dual-clip"}
    }
    assert "dual clip" in choices.refusal("aspo/fig8", study("tiny"))


def test_sweeps_of_the_maspo_paper():
    # Table 5 has eight pairs of alpha and beta on 7B; App. D.4 a pair of ablations on 1.5B.
    found = shown("maspo/fig8", "maspo")
    assert len(found["r1-distill-qwen-7b-8k"]) == 8
    assert found["r1-distill-qwen-1.5b-8k"] == {
        "maspo", "maspo-a0.5-b0.03", "maspo-no-positive-risk",
    }  # fmt: skip
    # Section 5.3 names these six for Fig. 4, Section 5.4 the 14B model.
    assert shown("maspo/fig4", "maspo") == {
        "r1-distill-qwen-7b-8k": {
            "maspo", "maspo-a0.1-b0.03", "maspo-a0.3-b0", "maspo-a0.3-b0.1", "maspo-a0.5-b0.03",
            "maspo-a0.8-b0.03",
        },
        "r1-distill-qwen-14b-8k": {"grpo", "maspo-a0.5-b0.03"},
    }  # fmt: skip
    assert choices.refusal("maspo/fig4", study("respo")) == (
        "needs 3 methods of one objective on one model, and the study has none"
    )
    assert choices.refusal("maspo/fig8", study("respo")) is not None


@pytest.mark.parametrize("name", ["maspo", "tiny-methods"])
def test_a_figure_of_a_sweep_shows_rows_of_the_table_of_sweeps(name):
    resolved = study(name)
    rows, runs = set(selection.sweeps(resolved)), choices.sweeps(resolved)
    assert runs
    assert set(runs) <= rows
    # All of one family at a model and N, or none.
    families = {selection.family(resolved.methods[run.method]) for run in runs}
    places = {(run.model, run.staleness) for run in runs}
    assert set(runs) == {
        run
        for run in rows
        if (run.model, run.staleness) in places
        and selection.family(resolved.methods[run.method]) in families
    }
    assert len(families) == 1


def test_methods_and_models_of_the_grid():
    found = shown("maspo/fig3", "maspo")
    assert list(found) == ["r1-distill-qwen-1.5b-8k", "r1-distill-qwen-7b-8k"]
    assert all(len(methods) == 7 for methods in found.values())
    # On-policy runs have a ratio of 1.
    resolved = study("tiny")
    assert {run.staleness for run in choices.off_policy(resolved)} == {8, 16, 32}
    assert {run.staleness for run in selection.full_length(resolved)} == {1, 8, 16, 32}


def test_objectives_at_token_level():
    assert choices.objectives("aspo/fig4", study("tiny")) == ["grpo"]
    assert choices.refusal("aspo/fig4", study("respo")) is None
    changed = study("respo").model_copy(
        update={"methods": {k: v for k, v in study("respo").methods.items() if k != "grpo"}}
    )
    assert choices.refusal("aspo/fig4", changed) == (
        "needs methods whose c is a token's own, and the study has none"
    )
    # ReSPO's two methods are one objective, and each is named.
    assert choices.objectives("respo/fig1", study("respo")).count("respo") == 2


def test_benchmarks_of_an_average():
    aspo, code = study("aspo"), study("aspo-code")
    assert choices.mathematics(aspo)[-1] == "olympiadbench"
    assert len(choices.mathematics(aspo)) == 6
    # Without mathematics it is the mean of what is there.
    assert choices.mathematics(code) == list(code.benchmarks)
    assert choices.most_sampled(study("maspo")) == ["aime24", "aime25"]
    assert choices.most_sampled(study("tiny")) == ["chain-easy", "chain-medium", "chain-hard"]
    paths = [path.parts for path in choices.inputs("aspo/fig2", aspo, Path("f"))]
    assert any("aime24" in parts for parts in paths)
    assert not any("mmlu_pro" in parts for parts in paths)


def test_inputs(folder):
    short = {"methods": ["vespo"], "staleness": [8], "updates": 16, "evaluate": False}
    unseen = {"methods": ["gspo"], "staleness": [8], "evaluate": False}
    made = folder(methods=["grpo"], extra_runs=[short, unseen]).study

    def inputs(figure):
        return [path.as_posix() for path in choices.inputs(figure, made, Path("f"))]

    run = "f/small/grpo/N8/seed1"
    cells = [f"{run}/eval/32/{benchmark}/cell.json" for benchmark in ("easy", "hard")]
    scores = [cell.replace("cell.json", "scores.parquet") for cell in cells]
    metrics = [
        f"f/small/{method}/N8/seed1/{name}"
        for method in ("grpo", "gspo")
        for name in ("metrics.parquet", "config.yaml")
    ]
    assert inputs("respo/fig1") == []
    assert inputs("respo/fig4") == scores
    assert inputs("respo/fig3") == metrics + scores
    assert inputs("respo/fig5") == metrics + cells
    assert inputs("maspo/fig3") == metrics[:2] + cells


def test_the_model_as_it_comes_is_an_input(folder):
    made = folder(methods=["grpo"], baselines=["small"]).study
    paths = [path.as_posix() for path in choices.inputs("respo/fig5", made, Path("f"))]
    assert "f/small/baseline/N0/seed0/eval/0/easy/cell.json" in paths
