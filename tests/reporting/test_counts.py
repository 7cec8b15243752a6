"""The responses behind each cell."""

import csv
import io

from respo.reporting.counts import section
from respo.reporting.layout import Table, render
from respo.reporting.rows import pool


def test_every_cell_is_in_the_file_and_those_not_read_are_shown(folder):
    made = folder(benchmarks=["easy", "hard"])
    made.cell("easy", [2, 1], "grpo", changes={"unparsed": 0, "majority": 0.5})
    made.cell("hard", [1, 0], "respo", changes={"unparsed": 1, "timed_out": 2, "failed": 1})
    found = section(made.results, pool(made.results))
    files = render(Table("t", [], [], [], [found]), "s", "S", "0")
    easy, hard = csv.DictReader(io.StringIO(files["counts.csv"]))
    assert (easy["method"], easy["benchmark"], easy["seed"]) == ("grpo", "easy", "1")
    assert (easy["responses"], easy["unparsed"], easy["truncated"]) == ("4", "0", "1")
    assert (easy["pass_at_1"], easy["majority"]) == ("0.75", "0.5")
    assert (hard["unparsed"], hard["timed_out"], hard["failed"]) == ("1", "2", "1")
    assert hard["majority"] == ""  # not known, which is not zero
    assert [row[2:4] for row in found.shown] == [["respo", "hard"]]
    assert "Responses behind the cells" in files["md"]
    assert "GRPO" not in files["md"]


def test_without_unread_responses_nothing_is_shown(folder):
    made = folder(benchmarks=["easy"])
    made.cell("easy", [2, 1], "grpo", changes={"unparsed": 0})
    found = section(made.results, pool(made.results))
    assert len(found.rows) == 1
    assert not found.shown
