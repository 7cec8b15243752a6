import re

from respo.files import sha256_of
from respo.provenance.read import read
from respo.provenance.sources import read_sources
from respo.reporting import report


def test_the_record_of_a_report(study_copy, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["report", "--study", str(study_copy)])
    report.main()
    path = study_copy / "report.sources.json"
    assert capsys.readouterr().out == f"{path}\n"
    record = read_sources(path)
    assert record["study"] == "mini"
    assert record["products"] == {"report.html": sha256_of(study_copy / "report.html")}
    shown = ["explore.html", "figures/respo/fig3.png", "tables/respo/table1.html"]
    assert record["sources"] == {name: sha256_of(study_copy / name) for name in shown}
    assert re.fullmatch(r"\d+\.\d+.*", record["environment"]["snakemake"])
    assert read(path)["kind"] == "report"
