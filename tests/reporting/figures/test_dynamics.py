"""The figures that are grids of quantities: which ones, and of which runs."""

import numpy as np
import pytest

from respo.reporting import choices, figures, registry, style
from respo.reporting.figures.maspo_fig3 import powers_of_two

TRAJECTORY = ["evaluation", "response", "approximate KL", "entropy"]
SWEEP = ["training accuracy", "entropy", "response"]


def drawn(made, id_):
    with style.applied():
        return registry.module(figures, id_).draw(made.results)


@pytest.mark.parametrize(
    ("id_", "study", "titles", "labels"),
    [
        ("respo/fig5", "respo", [f"Qwen3-1.7B, N = {n}" for n in (8, 16, 32)], TRAJECTORY),
        ("respo/fig6", "respo", [f"Qwen3-30B-A3B, N = {n}" for n in (8, 16, 32)], TRAJECTORY),
        (
            "aspo/fig2",
            "aspo",
            ["Qwen3-4B", "Qwen3-8B", "Qwen3-30B-A3B", "R1-Distill-1.5B"],
            ["evaluation", "entropy", "repeated\n20-grams", "clipped tokens", "KL to initial"],
        ),
        ("aspo/fig8", "aspo", ["Qwen3-4B"], ["gradient norm"]),
        ("maspo/fig3", "maspo", ["R1-Distill-1.5B", "R1-Distill-7B"], ["pass@k", *SWEEP]),
        ("maspo/fig4", "maspo", ["R1-Distill-7B", "R1-Distill-14B"], SWEEP),
        ("maspo/fig8", "maspo", ["R1-Distill-1.5B", "R1-Distill-7B"], SWEEP),
    ],
)
def test_what_a_figure_shows(paper, id_, study, titles, labels):
    figure = drawn(paper(study), id_)
    shown = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert len(shown) == len(titles)
    assert all(a.startswith(b) for a, b in zip(shown, titles, strict=True))
    rows = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert len(rows) == len(labels)
    assert all(a.startswith(b) for a, b in zip(rows, labels, strict=True))
    runs = choices.CHOICES[id_].runs(paper(study).study)
    assert f"{len(runs)} of {len(runs)} runs missing" in " ".join(figure.get_supxlabel().split())


def test_pass_at_k(folder):
    made = folder(methods=["grpo"])
    for benchmark in ("easy", "hard"):
        made.cell(benchmark, [1, 2], "grpo")
    axes = drawn(made, "maspo/fig3").axes[0]
    (bars,) = axes.containers
    # One of two: pass@1 is 1/2 and pass@2 is 1. Two of two: 1.
    assert bars.lines[0].get_xdata() == pytest.approx([1, 2])
    assert bars.lines[0].get_ydata() == pytest.approx([0.75, 1])
    assert axes.get_xscale() == "log"
    assert (powers_of_two(1), powers_of_two(6), powers_of_two(8)) == (
        [1], [1, 2, 4, 6], [1, 2, 4, 8],
    )  # fmt: skip


def test_pass_at_k_of_some_seeds(folder):
    made = folder(methods=["grpo", "respo"], seeds=[1, 2], staleness=[8, 16])
    for benchmark in ("easy", "hard"):
        made.cell(benchmark, [1, 2], "grpo")
    figure = drawn(made, "maspo/fig3")
    assert [text.get_text() for text in figure.axes[0].texts] == ["†", "†"]
    assert [text.get_text() for text in figure.axes[1].texts] == ["8 of 8 cells missing"]
    note = " ".join(figure.get_supxlabel().split())
    assert "14 of 16 cells missing: small/grpo/N8/seed2/eval/32/easy/cell.json, " in note
    assert "† of some of the seeds alone: Small & dense, N = 8, GRPO, update 32: 1 of 2" in note


def test_only_the_benchmarks_with_the_most_samples(folder):
    made = folder(
        methods=["grpo"],
        evaluation={
            "updates": [32], "temperature": 1.0, "top_p": 1.0, "seed": 0, "samples": {"hard": 1},
        },
    )  # fmt: skip
    made.cell("easy", [2, 2], "grpo")
    figure = drawn(made, "maspo/fig3")
    assert figure.axes[0].containers[0].lines[0].get_ydata() == pytest.approx([1, 1])
    assert figure.get_supxlabel().startswith("pass@k: mean of Easy,")


def test_benchmarks_of_the_papers(paper):
    # Its Table 1 has these; the other three are out of the domain.
    note = " ".join(drawn(paper("aspo"), "aspo/fig2").get_supxlabel().split())
    mathematics = "AIME24, AIME25, AMC23, MATH-500, MinervaMath, OlympiadBench"
    assert f"evaluation accuracy: mean of {mathematics}, bars" in note
    # Section 5.2 names these two.
    note = drawn(paper("maspo"), "maspo/fig3").get_supxlabel()
    assert note.startswith("pass@k: mean of AIME24, AIME25, bars")


def test_labels_of_a_sweep_are_explained(paper):
    note = " ".join(drawn(paper("maspo"), "maspo/fig8").get_supxlabel().split())
    assert "labels such as MASPO 0.5/0.03 give alpha/beta; MASPO: alpha 0.3, beta 0.03; " in note


def test_ratios_by_sign(folder):
    made = folder(staleness=[8], extra_runs=[{"methods": ["grpo"], "staleness": [1]}])
    positive = [1 + (update % 8) / 1000 for update in range(32)]
    made.metrics(
        [0.0] * 32, [0.0] * 32, "grpo", ratio_mean_pos=positive, ratio_mean_neg=[0.999] * 32
    )
    figure = drawn(made, "aspo/fig3")
    grpo, respo = figure.axes
    assert (grpo.get_title(), respo.get_title()) == ("GRPO", "ReSPO")
    above, below, zero = grpo.lines
    # The mean of 0, 1, ..., 7 by 1000; batches of eight updates.
    assert above.get_ydata() == pytest.approx(np.full(4, 0.0035))
    assert below.get_ydata() == pytest.approx(np.full(4, -0.001))
    assert list(zero.get_ydata()) == [0, 0]
    assert len(respo.lines) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A > 0", "A < 0"]
    assert "1 of 2 runs missing: small/respo/N8" in " ".join(figure.get_supxlabel().split())
