import csv
import io
import os
from collections import Counter
from pathlib import Path

import pytest

from respo.cli import UserError
from respo.config import load_study
from respo.reporting import reference, registry, table, tables
from respo.reporting.layout import Number

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config"
REFERENCE = CONFIG / "reference"
SHARED = Path(os.environ.get("RESPO_SHARED", ROOT.parent / "shared"))
DENSE, MIXTURE = "qwen3-1.7b-base", "qwen3-30b-a3b-base"
HEADER = "paper,source,model,method,N,benchmark,metric,value,sd,note\n"
GOOD = "p,table1,m,grpo,8,b,pass@1,4.2,,\n"


@pytest.fixture
def written(tmp_path):
    """A function that writes a file of numbers beside one model, one method, two benchmarks."""
    for name in ("models/m", "methods/grpo", "benchmarks/b", "benchmarks/c"):
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.touch()

    def write(text):
        (tmp_path / "reference").mkdir(exist_ok=True)
        (tmp_path / "reference" / "p.csv").write_text(text, encoding="utf-8")
        return tmp_path / "reference"

    return write


def test_reads_a_number(written):
    text = HEADER + 'p,table1,m,baseline,0,b+c,avg@4,4.2,0.5,"A note, of two parts."\n'
    (number,) = reference.read(written(text), "p")
    assert number.key == ("m", "baseline", 0, "b+c", "avg@4")
    assert (number.value, number.sd, number.note) == (4.2, 0.5, "A note, of two parts.")


def test_where_no_configuration_lies_beside_it_any_name_will_do(tmp_path):
    (tmp_path / "p.csv").write_text(HEADER + GOOD)
    assert [number.model for number in reference.read(tmp_path, "p")] == ["m"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the columns must be paper,source,"),
        ("paper,value\n", "line 1: the columns must be paper,source,"),
        (HEADER + "p,table1,m\n", "line 2: has 3 fields, not 10"),
        (HEADER + GOOD.replace("p,", "q,", 1), "line 2: paper: is 'q', but the file is that of"),
        (HEADER + GOOD.replace(",m,", ",n,"), "line 2: model: 'n' is not a file of config/models"),
        (HEADER + GOOD.replace("grpo", "GRPO"), "line 2: method: 'GRPO' is not a file of config"),
        (HEADER + GOOD.replace(",b,", ",b+d,"), "line 2: benchmark: 'd' is not a file of config/"),
        (HEADER + GOOD.replace("4.2", ""), "line 2: value: '' is not a number"),
        (HEADER + GOOD.replace("4.2", "nan"), "line 2: value: 'nan' is not a number"),
        (HEADER + GOOD.replace("8", "x"), "line 2: N: 'x' is not a number"),
        (HEADER + GOOD.replace(",,", ",?,"), "line 2: sd: '?' is not a number"),
        (HEADER + GOOD.replace("pass@1", ""), "line 2: source, metric: must not be empty"),
        (HEADER + GOOD + GOOD.replace("4.2", "5"), "line 3: the number of line 2 stands twice"),
        (HEADER + '"p', "not a CSV file"),
    ],
)
def test_a_bad_file_is_refused(written, text, message):
    folder = written(text)
    with pytest.raises(UserError) as error:
        reference.read(folder, "p")
    assert str(error.value).startswith(f"{folder / 'p.csv'}: ")
    assert message in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"p\.csv: no such file; --reference takes config/refer"):
        reference.read(tmp_path, "p")


@pytest.mark.parametrize("paper", ["respo", "aspo", "maspo"])
def test_the_facts_are_all_there(paper):
    numbers = reference.read(REFERENCE, paper)
    shared = SHARED / "spec" / "reference" / f"{paper}.csv"
    if not shared.is_file():
        pytest.skip("the papers' tables lie beside the checkout only where it was developed")
    with shared.open(encoding="utf-8") as file:
        printed = Counter(float(row["value"]) for row in csv.DictReader(file))
    assert not printed - Counter(number.value for number in numbers)


def test_oddities_are_noted():
    notes = {n.key: n.note for p in ("aspo", "maspo") for n in reference.read(REFERENCE, p)}
    # By arithmetic from the paper's rows: (62.4 + 33.0 + 42.9) / 3 and (88.6 + 56.3 + 57.4) / 3.
    assert notes["qwen3-8b", "grpo", 4, "macro", "accuracy"].endswith("which is 46.1.")
    assert notes["qwen3-8b", "aspo", 4, "macro", "accuracy"].endswith("which is 67.4.")
    # 94.8 % of 40 problems are 37.92 of them; 95.0 % are 38.
    key = "r1-distill-qwen-1.5b-8k", "grpo", 16, "amc23", "pass@32"
    assert "Not a multiple of 1/40" in notes[key]
    assert notes["r1-distill-qwen-1.5b-8k", "maspo", 16, "amc23", "pass@32"] == ""
    assert "674 problems" in notes["qwen3-4b", "grpo", 4, "olympiadbench", "avg@4"]


def compared(made, id_="respo/table1"):
    files = table.make(id_, made.results, REFERENCE)
    rows = list(csv.DictReader(io.StringIO(files.get("reference.csv", ""))))
    keys = ("source", "model", "method", "N", "benchmark", "metric")
    return files, {tuple(row[key] for key in keys): row for row in rows}


def test_numbers_of_the_main_table_meet_their_rows(paper):
    made = paper("respo")
    # 4 of 16 and 4 of 16 on three benchmarks: 25 %; of K = 4 all: 100 %.
    made.cells("respo", DENSE, 32, [4, 4])
    made.cells("respo", DENSE, 32, [4, 4], seed=2)
    made.cells("respo", DENSE, 32, [4, 4], seed=3)
    # 8 and 0 of 16: 25 % with an error; 4 and 0 of 4: 50 %.
    made.cells("vespo", MIXTURE, 16, [8, 0], ["aime25"])
    files, rows = compared(made)
    # Table 1 has 24 rows of 7 numbers; Section 4.3 four averages of three benchmarks, of N = 32.
    assert Counter(source for source, *_ in rows) == {"table1": 168, "sec4.3": 4}
    dense = rows["table1", DENSE, "respo", "32", "macro", "pass@1"]
    assert (dense["paper"], dense["ours"]) == ("34.5", "62.5")
    assert (dense["difference"], dense["standard_error"]) == ("28.0", "0.0")
    assert dense["within_error"] == "no"
    assert rows["table1", DENSE, "respo", "32", "aime25", "pass@1"]["ours"] == "25.0"
    one = rows["table1", MIXTURE, "vespo", "16", "aime25", "pass@1"]
    # The paper has 15.2; the error is that of the mean of two draws of 1/2 and 0: 0.25 / sqrt(2).
    assert (one["paper"], one["ours"], one["within_error"]) == ("15.2", "25.0", "yes")
    assert float(one["standard_error"]) == pytest.approx(17.68, rel=0.03)
    gone = rows["table1", MIXTURE, "vespo", "16", "macro", "pass@1"]
    assert (gone["paper"], gone["ours"], gone["difference"]) == ("49.3", "", "")
    line = next(
        line
        for line in files["md"].splitlines()
        if line.startswith("| Qwen3-1.7B ") and "ReSPO" in line and "34.5" in line
    )
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        "Qwen3-1.7B", "32", "ReSPO", "Macro average", "pass@1",
        "34.5", "62.5", "0.0", "+28.0", "no", "1",
    ]  # fmt: skip
    assert "- 1: The paper's value is of one of its three runs." in files["md"]


def test_numbers_of_the_training_have_no_columns_of_errors(paper):
    made = paper("respo")
    files, rows = compared(made, "respo/table7")
    assert len(rows) == 6
    part = files["md"].partition("## Comparison with the paper")[2]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    head, _, *shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert head == ["Model", "N", "Method", "Metric", "Paper", "Ours", "Difference", "Note"]
    assert "errors are over problems" not in part
    # As many digits as the paper's, thousands apart, and proper signs.
    assert {tuple(row[3:5]) for row in shown} == {
        ("mean tokens, log W ≤ −0.5", "1,276"), ("mean tokens, log W ≤ −0.5", "936"),
        ("length ratio, log W ≤ −0.5", "1.13"), ("length ratio, log W ≤ −0.5", "1.06"),
        ("responses, log W ≤ −0.5", "7,163"), ("responses, log W ≤ −0.5", "4,918"),
    }  # fmt: skip
    header = files["reference.csv"].splitlines()[0]
    assert ",metric,paper,paper_sd,ours,standard_error,difference,within_error,note," in header


def test_printed_zeros_are_kept(paper):
    made = paper("respo")
    made.cells("grpo", DENSE, 8, [4, 4])
    files, rows = compared(made)
    assert rows["table1", MIXTURE, "gspo", "8", "aime25", "pass@1"]["paper"]
    part = files["md"].partition("## Comparison with the paper")[2]
    lines = [line for line in part.splitlines() if "pass@1" in line]
    cells = [line.split("|")[6].partition("±")[0].strip() for line in lines]
    assert all("." in cell for cell in cells)
    # Section 4.3 prints two digits, Table 1 one.
    assert {len(cell.partition(".")[2]) for cell in cells} == {1, 2}


def test_the_mean_of_some_benchmarks_has_their_error(paper):
    made = paper("respo")
    for seed in (1, 2, 3):
        made.cells("respo", MIXTURE, 32, [16, 0], ["aime25", "aime24", "amc23"], seed=seed)
        made.cells("respo", MIXTURE, 32, [0, 0], ["olympiadbench", "math500"], seed=seed)
        made.cells("respo", MIXTURE, 32, [0, 0], ["minerva_math"], seed=seed)
    files, rows = compared(made)
    assert "41.94 ± 0.47" in files["md"]
    assert "± of the paper's value is a standard deviation" in files["md"]
    row = rows["sec4.3", MIXTURE, "respo", "32", "aime25+aime24+amc23", "pass@1"]
    assert (row["paper"], row["paper_sd"], row["ours"]) == ("41.94", "0.47", "50.0")
    # Each has a variance of 1/4 / 2; the mean of three independent ones a third of it.
    assert float(row["standard_error"]) == pytest.approx(100 * (1 / 24) ** 0.5, rel=0.03)


def test_a_study_that_is_in_no_paper_says_so(folder):
    made = folder()
    files, rows = compared(made)
    assert not rows
    assert "reference.csv" not in files
    assert "nothing to compare" in files["md"]
    assert "reference.csv" not in table.suffixes("respo/table1", made.study, REFERENCE)


def test_without_papers_nothing_is_compared(folder):
    files = table.make("respo/table1", folder().results)
    assert "nothing to compare" not in files["md"]


def test_averages_are_compared_whatever_k_but_pass_at_k_is_not(paper):
    made = paper("aspo")
    samples = {**made.study.study.evaluation.samples, "aime24": 32}
    evaluation = made.study.study.evaluation.model_copy(update={"samples": samples})
    study = made.study.study.model_copy(update={"evaluation": evaluation})
    made.study = made.study.model_copy(update={"study": study})
    text = reference_text(made.study)
    (made.path / "study.yaml").write_text(text, encoding="utf-8")
    made.cells("grpo", "qwen3-4b", 4, [8, 0], ["aime24"])
    made.cells("grpo", "qwen3-4b", 4, [8, 0], ["aime25"])
    _, rows = compared(made, "aspo/table1")
    # 8 and 0 of 32, and of 64.
    assert rows["table1", "qwen3-4b", "grpo", "4", "aime24", "avg@64"]["ours"] == "12.5"
    assert rows["table1", "qwen3-4b", "grpo", "4", "aime24", "pass@64"]["ours"] == ""
    assert rows["table1", "qwen3-4b", "grpo", "4", "aime25", "avg@64"]["ours"] == "6.25"
    assert rows["table1", "qwen3-4b", "grpo", "4", "aime25", "pass@64"]["ours"] == "50.0"


def reference_text(study):
    from respo.config.yaml import canonical

    return canonical(study.model_dump(mode="json"))


@pytest.mark.parametrize("name", ["respo", "aspo", "aspo-code", "maspo"])
def test_every_number_of_a_listed_table_has_a_place(name):
    """What a table is compared with, it can be asked for: no metric is unknown to it."""
    study = load_study(CONFIG, name)
    counts = {}
    for id_ in study.study.tables:
        module = registry.module(tables, id_)
        assert module.applies(study) is None
        printed = module.PRINTED and table.printed_numbers(id_, module, study, REFERENCE)
        counts[id_] = len(printed)
        compares = "reference.csv" in table.suffixes(id_, study, REFERENCE)
        assert compares == bool(printed)
    # Numbers of the papers' tables, counted there; the study of ASPO has half of its paper.
    assert {id_: n for id_, n in counts.items() if n} == {
        "respo": {
            "respo/table1": 172, "respo/table5": 7, "respo/table6": 8, "respo/table7": 6,
            "respo/table8": 2, "respo/training": 56,
        },
        "aspo": {"aspo/table1": 14 * 13, "aspo/table3": 24, "aspo/table4": 21},
        "aspo-code": {"aspo/table2": 40},
        "maspo": {
            "maspo/table1": 14 * 14, "maspo/table2": 12, "maspo/table5": 8 * 14,
            "maspo/table6": 28,
        },
    }[name]  # fmt: skip


def test_a_difference_at_the_limit_is_within_error():
    study = load_study(CONFIG, "respo")
    key = DENSE, "grpo", 8, "aime25", "pass@1"
    printed = reference.Printed("respo", "table1", *key, value=10.0, sd=None, note="")
    for error, within in ((1.0, "yes"), (0.99, "no"), (None, "")):
        found = reference.section([printed], study, lambda *_, e=error: Number(11.95, e))
        (row,) = found.rows
        assert row[15] == within
