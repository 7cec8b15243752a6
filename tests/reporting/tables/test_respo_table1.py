import csv
import io
import re
import subprocess
import sys

import pytest

from respo.reporting import table

ID = "respo/table1"
ON_POLICY = {"extra_runs": [{"methods": ["grpo"], "staleness": [1]}]}


def render(results):
    return table.make(ID, results)


def constant(made, values, **where):
    """Write cells in which all problems have the same c of 2 samples: no error, exact digits."""
    for benchmark, correct in values.items():
        made.cell(benchmark, [correct, correct], **where)


def lines(text, start):
    # The counts of each cell, which come last, have tests of their own.
    before = text.partition("## Responses behind the cells")[0]
    return [line for line in before.splitlines() if line.startswith(start)]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture
def full(folder):
    made = folder(methods=["grpo", "gspo", "respo"], **ON_POLICY)
    constant(made, {"easy": 2, "hard": 2}, method="grpo", staleness=1)
    constant(made, {"easy": 1, "hard": 2}, method="grpo")
    constant(made, {"easy": 1, "hard": 1}, method="gspo")
    constant(made, {"easy": 0, "hard": 0}, method="respo")
    return made


def test_markdown(full):
    text = render(full.results)["md"]
    shown = [cells(line) for line in lines(text, "| ")]
    assert shown[0] == [
        "Model", "N", "Method", "Easy", "Hard", "Macro average", "Seed sd", "Seeds",
    ]  # fmt: skip
    # On-policy: not ranked. N = 8: easy ties at 50, so both are best and 0.0 is second.
    assert [row[1:] for row in shown[2:6]] == [
        ["1", "on-policy (GRPO)", "100.0 ± 0.0", "100.0 ± 0.0", "100.0 ± 0.0", "", "1"],
        ["8", "GRPO", "**50.0** ± 0.0", "**100.0** ± 0.0", "**75.0** ± 0.0", "", "1"],
        ["8", "GSPO", "**50.0** ± 0.0", "<u>50.0</u> ± 0.0", "<u>50.0</u> ± 0.0", "", "1"],
        ["8", "ReSPO", "<u>0.0</u> ± 0.0", "0.0 ± 0.0", "0.0 ± 0.0", "", "1"],
    ]
    assert {row[0] for row in shown[2:6]} == {"Small & dense"}
    # The differences come after the notes; none within the on-policy block.
    # Problems agree, so none of them is needed; of samples, the tries of one problem never do.
    assert [row[1:7] for row in shown[8:]] == [
        ["8", "GSPO − GRPO", "−25.0", "[−25.0, −25.0]", "−25.0", "one seed"],
        ["8", "ReSPO − GRPO", "−75.0", "[−75.0, −75.0]", "−75.0", "one seed"],
    ]
    assert [row[7:] for row in shown[8:]] == [["enough", "enough", ""]] * 2
    # GRPO is the reference and the best; the third pair is in the file of all alone.
    assert "Here are 2 of 3 pairs" in text
    pairs = csv.DictReader(io.StringIO(render(full.results)["contrasts.csv"]))
    assert [(row["first"], row["second"], row["second_minus_first"]) for row in pairs] == [
        ("grpo", "gspo", "-0.25"), ("grpo", "respo", "-0.75"), ("gspo", "respo", "-0.5"),
    ]  # fmt: skip
    assert "Incomplete" not in text
    assert f"made from results {digest(full)}" in text


def digest(made):
    return next(csv.DictReader(io.StringIO(render(made.results)["csv"])))["made_from"]


def test_notes(full):
    text = render(full.results)["md"]
    assert "of the checkpoint at update 32" in text
    assert "Easy: 2 × 2 (strict box); Hard: 2 × 2 (strict box)" in text
    assert "temperature 1, top-p 0.7, at most 64 new tokens" in text
    assert "cluster bootstrap over problems (10,000 replicates, seed 0" in text
    # 8 cells with 4 responses, 1 unparsed and 1 truncated each.
    counts = next(line for line in text.splitlines() if line.startswith("- Responses: "))
    assert counts == (
        "- Responses: 32. Of these count as wrong: without a readable answer 8; out of time when "
        "checked 0; failed then, by a crash or too much memory or output, 0. Cut at the length "
        "limit: 8."
    )
    assert "means over seeds" not in text  # one seed: nothing to explain


def test_latex(full):
    text = render(full.results)["tex"]
    assert lines(text, "Small") == [
        r"Small \& dense & 1 & on-policy (GRPO) & $100.0_{\pm 0.0}$ & $100.0_{\pm 0.0}$"
        r" & $100.0_{\pm 0.0}$ &  & 1 \\",
        r"Small \& dense & 8 & GRPO & $\mathbf{50.0}_{\pm 0.0}$ & $\mathbf{100.0}_{\pm 0.0}$"
        r" & $\mathbf{75.0}_{\pm 0.0}$ &  & 1 \\",
        r"Small \& dense & 8 & GSPO & $\mathbf{50.0}_{\pm 0.0}$ & $\underline{50.0}_{\pm 0.0}$"
        r" & $\underline{50.0}_{\pm 0.0}$ &  & 1 \\",
        r"Small \& dense & 8 & ReSPO & $\underline{0.0}_{\pm 0.0}$ & $0.0_{\pm 0.0}$"
        r" & $0.0_{\pm 0.0}$ &  & 1 \\",
    ]
    assert r"Easy: 2 $\times$ 2 (strict box)" in text


def test_html(full):
    text = render(full.results)["html"]
    shown = [re.findall(r"<t[dh] class=.*?>(.*?)</t[dh]>", line) for line in lines(text, "<tr>")]
    assert shown[1:3] == [
        ["Small &amp; dense", "1", "on-policy (GRPO)", *["100.0 ± 0.0"] * 3, "", "1"],
        ["Small &amp; dense", "8", "GRPO", "<b>50.0</b> ± 0.0", "<b>100.0</b> ± 0.0",
         "<b>75.0</b> ± 0.0", "", "1"],
    ]  # fmt: skip
    assert shown[3][4] == "<u>50.0</u> ± 0.0"
    assert shown[6][2:7] == ["GSPO − GRPO", "−25.0", "[−25.0, −25.0]", "−25.0", "one seed"]
    assert "<li>Sampling: temperature 1" in text
    # The page needs no other file.
    assert not re.search("(src|href)=", text)


def test_csv(full):
    shown = list(csv.DictReader(io.StringIO(render(full.results)["csv"])))
    assert len(shown) == 4
    assert {key: shown[1][key] for key in shown[1] if key != "made_from"} == {
        "study": "tried", "model": "small", "method": "grpo", "N": "8",
        "seeds": "1", "complete_seeds": "1",
        "easy_pass_at_1": "0.5", "easy_standard_error": "0.0",
        "hard_pass_at_1": "1.0", "hard_standard_error": "0.0",
        "macro_pass_at_1": "0.75", "macro_standard_error": "0.0", "macro_seed_sd": "",
        "responses": "8", "unparsed": "2", "timed_out": "0", "failed": "0", "truncated": "2",
        "mean_response_tokens": "10.0",
    }  # fmt: skip


def test_csv_keeps_full_precision(folder):
    made = folder(methods=["grpo"], benchmarks=["easy"])
    made.cell("easy", [1, 0, 0], "grpo")
    (row,) = csv.DictReader(io.StringIO(render(made.results)["csv"]))
    assert float(row["easy_pass_at_1"]) == pytest.approx(1 / 6, abs=1e-15)
    # Population variance of (1/2, 0, 0) is 1/18, over 3 problems; estimated to about 1 %.
    assert float(row["easy_standard_error"]) == pytest.approx((1 / 54) ** 0.5, rel=0.03)


def test_a_model_as_it_comes_stands_before_its_runs(folder):
    short = {"methods": ["vespo"], "staleness": [8], "updates": 16, "evaluate": False}
    made = folder(baselines=["small"], extra_runs=[short])
    constant(made, {"easy": 1, "hard": 1}, method="baseline", staleness=0, seed=0)
    constant(made, {"easy": 2, "hard": 2}, method="grpo")
    constant(made, {"easy": 1, "hard": 2}, method="respo")
    text = render(made.results)["md"]
    shown = [cells(line)[1:4] for line in lines(text, "| Small")]
    # Not ranked and not compared, and runs that are not evaluated are not missing.
    assert shown == [
        ["", "as it comes", "50.0 ± 0.0"],
        ["8", "GRPO", "**100.0** ± 0.0"],
        ["8", "ReSPO", "50.0 ± 0.0"],
        ["8", "ReSPO − GRPO", "−25.0"],
    ]
    assert "Rows without N are models as they come" in text
    assert "Incomplete" not in text


def test_ranks_by_the_printed_digits(folder):
    made = folder(benchmarks=["easy"])
    made.cell("easy", [1] * 1249 + [0], "grpo")  # 1249 / 2500 = 49.96 %, printed 50.0
    made.cell("easy", [1] * 1250, "respo")
    text = render(made.results)["md"]
    assert text.count("**50.0** ±") == 4  # both methods, in the benchmark and the average


def test_a_value_alone_is_not_ranked(folder):
    made = folder()
    constant(made, {"easy": 1, "hard": 1}, method="grpo")
    text = render(made.results)["md"]
    assert "**" not in text
    assert "<u>" not in text


def test_several_seeds(folder):
    made = folder(seeds=[1, 2])
    constant(made, {"easy": 2, "hard": 1}, method="grpo", seed=1)
    constant(made, {"easy": 1, "hard": 0}, method="grpo", seed=2)
    constant(made, {"easy": 0, "hard": 0}, method="respo", seed=2)
    texts = render(made.results)
    grpo, respo = [cells(line)[2:] for line in lines(texts["md"], "| Small")[:2]]
    # Macro averages 75 and 25 by seed: mean 50, population standard deviation 25.
    assert grpo == ["GRPO", "75.0 ± 0.0", "25.0 ± 0.0", "50.0 ± 0.0", "25.0", "2"]
    # Of one seed of two: marked, and not ranked; the other one is alone then.
    assert respo == ["ReSPO", "0.0† ± 0.0", "0.0† ± 0.0", "0.0† ± 0.0", "", "1 of 2"]
    assert (
        "- † of some of the seeds alone, not ranked: Small & dense, N = 8, ReSPO: 1 of 2 seeds."
        in (texts["md"])
    )
    assert "$0.0^{\\dagger}_{\\pm 0.0}$" in texts["tex"]
    assert "population standard deviation (ddof 0)" in texts["md"]
    first = next(csv.DictReader(io.StringIO(texts["csv"])))
    assert (first["macro_seed_sd"], first["seeds"], first["responses"]) == ("0.25", "2", "16")


def test_notes_tell_which_columns_lack_seeds(folder):
    made = folder(seeds=[1, 2])
    constant(made, {"easy": 2, "hard": 1}, method="grpo", seed=1)
    constant(made, {"easy": 1}, method="grpo", seed=2)
    text = render(made.results)["md"]
    assert "alone, not ranked: Small & dense, N = 8, GRPO: 1 of 2 seeds (Hard)." in text
    (grpo, _) = [cells(line)[3:6] for line in lines(text, "| Small")]
    assert grpo == ["75.0 ± 0.0", "50.0† ± 0.0", "--"]


def test_notes_on_ranks_are_those_that_apply(folder, full):
    text = render(full.results)["md"]
    assert "in bold, second of three or more underlined, ranked as printed" in text
    assert "On-policy rows (N = 1) are the reference and not ranked" in text
    made = folder()
    constant(made, {"easy": 1, "hard": 1}, method="grpo")
    text = render(made.results)["md"]
    assert "Best value of a model and N in bold, ranked as printed" in text
    assert "On-policy" not in text
    assert "bold" not in render(folder(methods=["grpo"]).results)["md"]


def test_missing_cells_are_shown_and_named(folder):
    made = folder()
    constant(made, {"easy": 1}, method="grpo")
    texts = render(made.results)
    grpo, respo = [cells(line)[2:] for line in lines(texts["md"], "| Small")]
    assert grpo == ["GRPO", "50.0 ± 0.0", "--", "--", "", "0 of 1"]
    assert respo == ["ReSPO", "--", "--", "--", "", "0 of 1"]
    assert "Incomplete: 3 of 4 cells are missing (--); seeds are counted" in texts["md"]
    assert f"`{made.path}/small/grpo/N8/seed1/eval/32/hard/cell.json`" in texts["md"]
    assert f"snakemake {made.path}/tables/respo/table1.md" in texts["md"]
    assert "Differences" not in texts["md"]
    shown = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert (shown[0]["hard_pass_at_1"], shown[0]["macro_pass_at_1"]) == ("", "")
    assert (shown[1]["responses"], shown[1]["mean_response_tokens"]) == ("", "")


def test_a_long_list_of_missing_cells_is_cut(folder):
    text = render(folder(staleness=[8, 16, 32]).results)["md"]
    assert "Incomplete: 12 of 12 cells are missing" in text
    assert text.count("cell.json") == 6
    assert "and 6 more" in text


def test_command_writes_its_files_and_stays_light(full):
    code = (
        "import sys\nfrom respo.reporting.table import main\nmain()\n"
        "print({'torch', 'matplotlib'} & set(sys.modules))"
    )
    arguments = ["respo/table1", "--study", full.path]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True
    )
    suffixes = table.suffixes(ID, full.study)
    further = [f"{name}.{kind}" for name in ("contrasts", "counts") for kind in ("csv", "tex")]
    assert suffixes == ["csv", "md", "html", "tex", *further]
    paths = [full.path / f"tables/respo/table1.{suffix}" for suffix in suffixes]
    assert done.stdout.splitlines() == [*map(str, paths), "set()"]
    for path, text in zip(paths, render(full.results).values(), strict=True):
        assert path.read_text(encoding="utf-8") == text


def stopped(monkeypatch, *arguments):
    """Run the command, which must stop; return its exit code or message."""
    monkeypatch.setattr(sys, "argv", ["table", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        table.main()
    return stop.value.code


def test_command_tells_what_is_wrong(full, monkeypatch, capsys):
    path = full.cell("easy", [1, 1], "grpo", changes={"update": 7})
    message = stopped(monkeypatch, "respo/table1", "--study", full.path)
    assert message.startswith(f"error: {path}: update: is 7, but the path belongs to 32")
    assert not (full.path / "tables").exists()
    assert stopped(monkeypatch, "respo/table9", "--study", full.path) == 2
    assert "invalid choice: 'respo/table9' (choose from " in capsys.readouterr().err


def test_made_up_results_say_so_in_every_format(folder):
    made = folder(benchmarks=["easy"])
    for method in ("grpo", "respo"):
        made.cell("easy", [1, 0], method, changes={"made_from": {"synthetic": True}})
    texts = render(made.results)
    assert "# A study: pass@1 (synthetic)\n" in texts["md"]
    assert "\n\n- Synthetic: the numbers are made up" in texts["md"]  # the first note
    assert "<li>Synthetic: the numbers are made up" in texts["html"]
    # LaTeX has a file for each table: here the pair is compared, and responses were not read.
    for name in ("tex", "contrasts.tex", "counts.tex"):
        assert "\nSynthetic: the numbers are made up" in texts[name]
    for name in ("csv", "counts.csv"):
        assert next(csv.DictReader(io.StringIO(texts[name])))["made_from"].startswith("synthetic-")


def test_results_that_are_not_made_up_do_not_say_so(full):
    assert not any("ynthetic" in text for text in render(full.results).values())
