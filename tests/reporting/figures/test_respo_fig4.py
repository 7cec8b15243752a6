from respo.reporting import style
from respo.reporting.figures.respo_fig4 import draw


def test_a_row_per_setting_and_a_column_per_benchmark(folder):
    made = folder(staleness=[8, 16], extra_runs=[{"methods": ["grpo"], "staleness": [1]}])
    # 90 lengths: ten in each of nine bins, half of them correct.
    rows = [(f"p{n % 2}", n % 2 == 0, n // 2 + 1) for n in range(90)]
    made.scores("easy", rows, "grpo", 16)
    with style.applied():
        figure = draw(made.results)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["all benchmarks", "Easy", "Hard", "", "", ""]
    assert figure.axes[3].get_ylabel() == "Small & dense,\nN = 16\naccuracy"
    pooled, easy, hard = figure.axes[3:]
    for axes in (pooled, easy):
        grpo, respo = axes.lines
        assert grpo.get_ydata()[:9].tolist() == [0.5] * 9
        assert not any(respo.get_ydata() >= 0)
    assert not any(y >= 0 for line in hard.lines for y in line.get_ydata())
    # On-policy runs have lengths of their own, which these bins do not fit.
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["GRPO", "ReSPO"]
    assert "9 of 10 files of scores missing" in " ".join(figure.get_supxlabel().split())
