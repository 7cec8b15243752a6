import pytest

from respo.reporting.page.make import below, command


def test_targets_are_below_the_study(folder):
    made = folder()
    results = made.results
    assert below(results, results.metrics_path(made.run("grpo"))) == (
        "small/grpo/N8/seed1/metrics.parquet"
    )


@pytest.mark.parametrize("here", [True, False])
def test_a_folder_beside_a_snakefile_is_named_as_the_rules_name_it(
    folder, monkeypatch, tmp_path, here
):
    made = folder()
    project = tmp_path / "project"
    (project / "results").mkdir(parents=True)
    made.path.rename(project / "results" / "tried")
    made.path = project / "results" / "tried"
    (project / "Snakefile").touch()
    monkeypatch.chdir(project if here else tmp_path)
    assert command(made.results) == {
        "before": "snakemake results/tried/",
        "after": " --config study=tried",
        "where": "" if here else str(project),
    }


def test_other_folders_are_told_to_the_rules(folder, monkeypatch, tmp_path):
    made = folder()
    elsewhere = tmp_path / "my results"
    elsewhere.mkdir()
    made.path.rename(elsewhere / "tried")
    made.path = elsewhere / "tried"
    assert command(made.results) == {
        "before": f"snakemake '{elsewhere}/tried'/",
        "after": f" --config study=tried results='{elsewhere}'",
        "where": "",
    }
    # In the folder that is left to the rules, without `results` of the configuration.
    monkeypatch.chdir(tmp_path)
    assert command(made.results)["before"] == "snakemake 'my results/tried'/"
    assert command(made.results)["after"] == " --config study=tried results='my results'"
