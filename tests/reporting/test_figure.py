import os
import subprocess
import sys

import pytest

from respo.parquet import made_from, read_parquet, write_parquet
from respo.provenance.sources import read_sources
from respo.reporting import figure, notes, style


def draw(monkeypatch, id_, path):
    monkeypatch.setattr(sys, "argv", ["figure", id_, "--study", str(path)])
    figure.main()
    return [(path / f"figures/{id_}.{suffix}").read_bytes() for suffix in ("pdf", "png")]


@pytest.mark.parametrize("id_", ["respo/fig1", "respo/fig3", "aspo/fig4"])
def test_remaking_gives_the_same_bytes(folder, monkeypatch, id_):
    made = folder()
    made.metrics([0.5] * 32, [-0.1] * 32, "grpo")
    pdf, png = draw(monkeypatch, id_, made.path)
    assert pdf.startswith(b"%PDF")
    assert png.startswith(b"\x89PNG")
    assert b"made from results" in png
    assert b"CreationDate" not in pdf
    # Another process, another day as far as the files can tell, another backend. Only the kernels
    # need torch.
    code = (
        "import sys\nfrom respo.reporting.figure import main\nmain()\nprint('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, id_, "--study", made.path],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1000000000", "MPLBACKEND": "svg"},
    )
    assert done.stdout.splitlines()[-1] == str(id_ != "respo/fig3")
    again = [(made.path / f"figures/{id_}.{suffix}").read_bytes() for suffix in ("pdf", "png")]
    assert again == [pdf, png]
    record = read_sources(made.path / f"figures/{id_}.sources.json")
    metrics = "small/grpo/N8/seed1/metrics.parquet"
    assert record["sources"].keys() >= {"study.yaml", *([metrics] if id_ == "respo/fig3" else [])}
    assert record["made_from"] in png.decode(errors="replace")
    assert "matplotlib" in record["environment"]


def test_a_figure_that_is_incomplete_names_its_target(folder, monkeypatch):
    made = folder(methods=["grpo"])
    made.metrics(
        [0.5] * 32, [-0.1] * 32, "grpo", ratio_mean_pos=[1.0] * 32, ratio_mean_neg=[1.0] * 32
    )
    written, save = [], style.save

    def keep(drawn, *rest):
        written.append(drawn.get_supxlabel())
        return save(drawn, *rest)

    monkeypatch.setattr(style, "save", keep)
    draw(monkeypatch, "respo/fig3", made.path)
    # It needs scores too. A long path is broken over lines.
    target = f"incomplete: `snakemake {made.path}/figures/respo/fig3.png` makes all that is missing"
    assert target.replace(" ", "") in "".join(written.pop().split())
    draw(monkeypatch, "aspo/fig3", made.path)  # of the metrics alone
    assert "incomplete" not in written.pop()


def test_made_up_numbers_say_so(folder, monkeypatch):
    made = folder()
    path = made.metrics([0.5] * 32, [-0.1] * 32, "grpo")
    table = read_parquet(path)
    write_parquet(path, table, made_from(table) | {"synthetic": True})
    marked = []
    monkeypatch.setattr(style, "mark_synthetic", lambda drawn, text: marked.append(text))
    draw(monkeypatch, "respo/fig3", made.path)
    draw(monkeypatch, "respo/fig1", made.path)  # of no results
    assert marked == [notes.SYNTHETIC]


def test_a_damaged_run_is_told_in_one_line(folder, monkeypatch):
    made = folder()
    path = made.metrics([0.5] * 31, [0.0] * 31, "grpo")
    with pytest.raises(SystemExit) as stop:
        draw(monkeypatch, "respo/fig3", made.path)
    assert str(stop.value).startswith(f"error: {path}: update: does not count from 1 to 32")
    assert not (made.path / "figures").exists()


def test_a_figure_that_a_study_cannot_have(folder, monkeypatch):
    made = folder()
    with pytest.raises(SystemExit) as stop:
        draw(monkeypatch, "respo/fig6", made.path)
    assert str(stop.value) == (
        f"error: {made.path}/study.yaml: figures: respo/fig6 needs runs of a mixture of experts, "
        "and the study has none"
    )


def draw_methods(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["figure", *map(str, arguments)])
    figure.main()


@pytest.mark.parametrize(
    ("id_", "suffix", "head"),
    [
        ("respo/fig1", "png", b"\x89PNG"),
        ("respo/fig1", "svg", b"<?xml"),
        ("aspo/fig4", "pdf", b"%PDF"),
    ],
)
def test_any_methods_without_a_study(tmp_path, monkeypatch, id_, suffix, head):
    made = []
    for name in ("one", "two"):
        out = tmp_path / name / f"figure.{suffix}"
        draw_methods(monkeypatch, id_, "--methods", "grpo,respo", "--out", out)
        made.append(out.read_bytes())
    assert made[0] == made[1]
    assert made[0].startswith(head)
    assert b"drawn from methods" in made[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["respo/fig1", "--methods", "grop", "--out", "x.png"], "error: --methods: 'grop' is"),
        (["respo/fig1", "--methods", "grpo", "--out", "x.jpg"], "error: --out: x.jpg must end in"),
        (["respo/fig3", "--methods", "grpo", "--out", "x.png"], "error: --methods: respo/fig3 is"),
        (["aspo/fig4", "--methods", "gspo", "--out", "x.png"], "error: aspo/fig4 draws objectives"),
    ],
)
def test_what_cannot_be_drawn_is_told_in_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        draw_methods(monkeypatch, *arguments)
    assert str(stop.value).startswith(message)
    assert "\n" not in str(stop.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["--methods", "grpo"], ["--study", "x", "--out", "x.png"], []]
)
def test_options_that_belong_together(monkeypatch, capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        draw_methods(monkeypatch, "respo/fig1", *arguments)
    assert stop.value.code == 2
    assert "usage" in capsys.readouterr().err
