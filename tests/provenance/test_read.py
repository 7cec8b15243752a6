"""What is told of each kind of file, and what is noticed when one has changed."""

import hashlib
import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from respo.cli import UserError
from respo.environment import environment
from respo.files import read_json, sha256_of, write_json
from respo.parquet import write_parquet
from respo.provenance import sources
from respo.provenance.read import PACKED, read


def states(told):
    return {one["what"]: one["state"] for one in told["made_from"]}


def test_a_pack_warns_that_more_is_made_than_it_holds(made):
    assert PACKED not in read(made.cell)["warnings"]
    write_json(made.path / "MANIFEST.json", {"files": {}})
    assert PACKED in read(made.cell)["warnings"]


def append(path):
    path.write_bytes(path.read_bytes() + b"\n")


ALL_OF_CELL = [
    "configuration",
    "initial weights",
    "training set",
    "checkpoint",
    "benchmark",
    "generations",
    "scores",
]


def test_a_cell_tells_everything(made):
    made.time(f"eval/{made.run.name}/128/chain-hard.generate", 7.5)
    told = read(made.cell)
    assert (told["kind"], told["update"], told["name"]) == ("cell", 128, "chain-hard")
    assert told["study"]["name"] == "tiny"
    assert told["run"] == {"model": "qwen3-tiny", "method": "respo", "staleness": 32, "seed": 1}
    assert told["numbers"]["pass_at_1"] == 0.5
    assert states(told) == dict.fromkeys(ALL_OF_CELL, "unchanged")
    hashes = {one["what"]: one["sha256"] for one in told["made_from"]}
    assert hashes["benchmark"] == sha256_of(made.benchmark)
    assert hashes["scores"] == sha256_of(made.cell.with_name("scores.parquet"))
    assert told["verifier"] == {"name": "strict_box", "version": "0.1.0"}
    assert told["sampling"]["top_p"] == 0.7
    assert [one["torch"] for one in told["environments"]["training"]] == ["2.13"]
    assert told["environments"]["cell"][0]["numpy"] == "2"
    assert told["environments"]["generation"][0]["engine"] == "local"
    assert told["environments"]["scoring"][0]["verifier"] == "strict_box 0.1.0"
    # Of the warm start and the training from their records, of generation from snakemake's.
    assert told["durations"] == {
        **{"warm start": 44.0, "training": 90.0, "generation": 7.5},
        **{"scoring": None, "cell": None},
    }
    assert told["training_set"]["origin"].startswith("generated (chain: operators [1, 8]")
    assert told["benchmark_rows"]["version"] == 1
    assert told["warnings"] == []
    path = f"{made.run.name}/eval/128/chain-hard/cell.json"
    assert told["command"] == (
        f"snakemake --force {made.path}/{path} --config study=tiny results={made.path.parent}"
    )


@pytest.mark.parametrize("name", ["scores.parquet", "generations.parquet", "."])
def test_scores_generations_and_the_folder_of_a_cell(made, name):
    told = read(made.cell.with_name(name) if name != "." else made.cell.parent)
    expected = {"generations.parquet": ALL_OF_CELL[:5], "scores.parquet": ALL_OF_CELL[:6]}
    assert list(states(told)) == expected.get(name, ALL_OF_CELL)
    assert told["environments"]["training"][0]["torch"] == "2.13"
    assert told["command"].split()[2].endswith("cell.json" if name == "." else name)


def test_a_package_upgraded_between_two_starts_is_told(made):
    made.train(starts=[(0, {}), (64, {"torch": "2.14", "processor": "q"})])
    made.evaluate()
    told = read(made.cell)
    found = [(one["torch"], one["processor"]) for one in told["environments"]["training"]]
    assert found == [("2.13", "p"), ("2.14", "q")]
    assert [start["update"] for start in told["training"]["starts"]] == [0, 64]


def test_a_cell_tells_of_its_run_as_it_was(made):
    made.train(starts=[(0, {"torch": "3.0"})])  # trained anew since
    assert [one["torch"] for one in read(made.cell)["environments"]["training"]] == ["2.13"]
    assert [one["torch"] for one in read(made.folder)["environments"]["training"]] == ["3.0"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda made: append(made.folder / "config.yaml"), "configuration"),
        (lambda made: made.weights(made.initial_weights, b"x"), "initial weights"),
        (lambda made: made._rows("train/chain", {"x": 1}), "training set"),
        (lambda made: made.weights(made.folder / "checkpoints/128", b"x"), "checkpoint"),
        (lambda made: made._rows("held_out/chain-hard", {}), "benchmark"),
        (lambda made: append(made.cell.with_name("generations.parquet")), "generations"),
        (lambda made: append(made.cell.with_name("scores.parquet")), "scores"),
    ],
)
def test_what_has_changed_since_is_named(made, change, what):
    change(made)
    assert states(read(made.cell)) == dict.fromkeys(ALL_OF_CELL, "unchanged") | {what: "changed"}


@pytest.fixture
def at_once():
    """What waits for a pipe is stopped."""

    def stop(*_):
        raise TimeoutError("waited for a pipe")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(path):
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        *(f"{{run}}/eval/128/chain-hard/{x}" for x in ("cell.json", "scores.parquet")),
        *(f"{{run}}/{x}" for x in ("metrics.parquet", "train.json")),
        *("data/train/chain.parquet", "data/train/chain.yaml", "initial/qwen3-tiny/initial.json"),
        *("tables/respo/table1.md", "tables/respo/table1.sources.json", "report.html"),
    ],
)
def test_a_pipe_is_not_waited_for(made, table, name, packed):
    path = made.path / name.format(run=made.run.name)
    pipe(path)
    if packed:
        write_json(made.path / "MANIFEST.json", {"files": {}})
    with pytest.raises(
        UserError, match=r"is no regular file, and was not read\. Remove it"
    ) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("data/train/chain.parquet", "training set"),
        ("data/held_out/chain-hard.parquet", "benchmark"),
        ("initial/qwen3-tiny/weights/model.safetensors", "initial weights"),
        ("{run}/checkpoints/128/model.safetensors", "checkpoint"),
        ("{run}/eval/128/chain-hard/scores.parquet", "scores"),
    ],
)
def test_an_input_that_is_a_pipe_is_told_as_such(made, name, what):
    pipe(made.path / name.format(run=made.run.name))
    told = read(made.cell)
    assert states(told) == dict.fromkeys(ALL_OF_CELL, "unchanged") | {what: "no file"}


@pytest.mark.usefixtures("at_once")
def test_sources_and_a_configuration_that_are_pipes(made, table):
    pipe(made.path / f"benchmarks/eval/{made.run.name}/128/chain-hard.cell.tsv")
    assert read(made.cell)["durations"]["cell"] is None
    pipe(made.cell)
    pipe(made.folder / "config.yaml")
    told = read(made.folder)
    assert states(told)["configuration"] == "no file"
    assert "config.yaml: is no regular file" in told["settings"]["unreadable"]
    told = read(table)
    cell = made.cell.relative_to(made.path).as_posix()
    assert told["sources"]["files"][cell]["state"] == "no file"
    assert told["warnings"] == [f"{made.cell}: is no regular file, and was not read"]
    assert told["warnings"][0] in read(made.path)["warnings"]


def test_what_is_gone_is_missing(made):
    for name in ("data", "initial"):
        shutil.rmtree(made.path / name)
    for name in ("generations", "scores"):
        made.cell.with_name(f"{name}.parquet").unlink()
    told = read(made.cell)
    gone = dict.fromkeys(ALL_OF_CELL, "missing")
    assert states(told) == gone | dict.fromkeys(["configuration", "checkpoint"], "unchanged")
    shutil.rmtree(made.folder / "checkpoints")  # as in a pack
    assert states(read(made.cell)) == gone | {"configuration": "unchanged"}
    (made.folder / "train.json").unlink()
    assert "the run has not ended" in read(made.cell)["warnings"][0]


def test_settings_that_differ_from_defaults_and_from_the_study(made):
    path = made.folder / "config.yaml"
    text = path.read_text().replace("kl_coefficient: 0.0\n", "kl_coefficient: 0.01\n")
    path.write_text(text.replace("lambda_pos: 2.0", "lambda_pos: 1.5"))
    settings = read(made.folder)["settings"]
    entries = {entry.pop("key"): entry for entry in settings["entries"]}
    assert entries["training.kl_coefficient"] == {
        **{"value": 0.01, "default": 0.0, "study": 0.0},
        "from": "studies/tiny.yaml: extra_runs",
    }
    assert [key for key, entry in entries.items() if "from" in entry] == ["training.kl_coefficient"]
    assert entries["training.reward"] == {"value": "strict_box", "default": "strict_box"}
    assert entries["staleness"] == {"value": 32}  # it has no default
    assert entries["training.optimizer.learning_rate"] == {"value": 0.0002}
    assert settings["objective"]["differs"] == [{"key": "lambda_pos", "value": 1.5, "default": 2.0}]
    assert settings["objective"]["name"] == "respo"
    assert settings["objective"]["code"] == settings["objective"]["code_now"]


def test_a_formula_that_has_changed_since(made):
    path = made.folder / "config.yaml"
    line = next(x for x in path.read_text().splitlines() if x.startswith("objective_code"))
    path.write_text(path.read_text().replace(line, "objective_code: 0123456789ab"))
    made.train()
    (warning,) = read(made.folder)["warnings"]
    assert warning.startswith("the formula of objective respo has changed since: its code was 0123")


def test_a_configuration_of_another_version(made):
    path = made.folder / "config.yaml"
    path.write_text(path.read_text() + "unheard_of: 1\n")
    made.train()
    told = read(made.folder)
    assert "unheard_of" in told["settings"]["unreadable"]
    assert told["warnings"] == [told["settings"]["unreadable"]]


def test_the_files_of_a_run(made):
    for name in ("metrics.parquet", "branches.parquet", "train.json", "config.yaml", "."):
        told = read(made.folder / name)
        assert told["command"].split()[2] == f"{made.folder}/train.json"
        tables = {"metrics.parquet": ["this file"], "branches.parquet": ["this file"]}
        own = tables.get(name, ["metrics", "branches"])
        assert states(told) == dict.fromkeys([*ALL_OF_CELL[:3], *own], "unchanged")
        assert told["warnings"] == []
    write_parquet(made.folder / "metrics.parquet", pa.table({"update": [1]}), {"synthetic": True})
    other, made_up = read(made.folder / "metrics.parquet")["warnings"]
    assert other.endswith("is not of the training that train.json beside it tells of")
    assert made_up == "its numbers are made up (synthetic)"
    assert states(read(made.folder / "metrics.parquet"))["this file"] == "changed"
    assert states(read(made.folder))["metrics"] == "changed"
    made.train(outputs=None)  # of version 0.1.0
    assert states(read(made.folder / "branches.parquet"))["this file"] == "no record"
    assert list(states(read(made.folder))) == ALL_OF_CELL[:3]


@pytest.mark.parametrize("name", [".", "model.safetensors"])
def test_a_checkpoint_is_hashed(made, name):
    folder = made.folder / "checkpoints/128"
    assert states(read(folder / name))["weights of this checkpoint"] == "unchanged"
    made.weights(folder, b"others")
    assert states(read(folder / name))["weights of this checkpoint"] == "changed"
    (folder / "model.safetensors").unlink()
    assert states(read(folder))["weights of this checkpoint"] == "missing"


def test_initial_weights(made):
    folder = made.path / "initial/qwen3-tiny"
    for path in (folder, folder / "initial.json", folder / "weights", folder / "config.yaml"):
        told = read(path)
        assert states(told) == {"weights": "unchanged"}
        assert told["initial"]["origin"].startswith("supervised training from random weights")
        assert told["command"].split()[2] == f"{folder}/initial.json"
    made.weights(folder / "weights", b"others")
    assert states(read(folder)) == {"weights": "changed"}


def test_rows_of_the_hub(made):
    path = made.training_set
    path.with_suffix(".yaml").write_text(
        "source: rows\nhub: a/b\nrevision: v1\nfiles: [c.parquet]\n"
    )
    files = {"commit": "d" * 40, "sha256": {"c.parquet": "e" * 64}}
    write_parquet(path, pa.table({"id": ["a"], "prompt": ["p"]}), {"files": files})
    rows = read(path)["rows"]
    assert rows["origin"] == "a/b on the hub at v1"
    assert rows["files"] == files
    assert rows["sha256"] == sha256_of(path)


@pytest.mark.parametrize("suffix", [".md", ".csv", ".sources.json"])
def test_a_table_tells_its_sources(made, table, suffix, here):
    told = read(table.with_suffix(suffix))
    assert (told["kind"], told["name"], told["warnings"]) == ("table", "respo/table1", [])
    assert list(told["sources"]["by_run"]) == [made.run.name]
    assert {one["state"] for one in told["sources"]["files"].values()} == {"unchanged"}
    assert f"made from results {told['digits']} -->" in table.read_text()
    assert told["environments"]["table"][0].items() >= here.items()
    assert told["environments"]["training"][0]["torch"] == "2.13"
    assert told["command"].split()[2] == f"{table.with_suffix(suffix)}"
    assert told["redraw"].startswith("python -m respo.reporting.table respo/table1 --study ")


def test_a_source_that_has_changed_or_gone(made, table):
    made.evaluate(numpy="3")
    told = read(table)
    assert told["warnings"] == [f"{made.cell}: has changed since"]
    made.cell.unlink()
    assert read(table)["warnings"] == [f"{made.cell}: is not there any more"]


def test_only_what_is_unchanged_lends_its_versions(made, table):
    """Computed by hand: the table is of one cell, whose run was 90 s long."""
    made.time(f"eval/{made.run.name}/128/chain-hard.generate", 7.5)
    made.time("tables/respo/table1", 0.5)
    told = read(table)
    assert told["durations"] == {
        **{"warm start": 44.0, "training": 90.0, "generation": 7.5, "table": 0.5}
    }
    assert told["counted"] == {"warm start": 1, "training": 1, "generation": 1}
    made.evaluate(numpy="3")
    for lost in (False, True):
        if lost:
            made.cell.unlink()
        told = read(table)
        found = told["environments"]
        assert [step for step, one in found.items() if one] == ["table"]
        assert told["inputs"] == []
        assert told["configurations"]["runs"] == 0
        assert told["durations"] == {"table": 0.5}


def test_a_table_tells_data_weights_and_verifier(made, table):
    train, initial, benchmark = read(table)["inputs"]
    counts = {"state": "unchanged", "count": 1, "of": 1}
    assert (
        train.items()
        >= {
            **{"what": "training set", "name": "chain", **counts},
            "sha256": hashlib.sha256(made.training_set.read_bytes()).hexdigest(),
        }.items()
    )
    assert train["origin"].startswith("generated (chain: operators [1, 8]")
    assert (
        initial.items()
        >= {
            **{"what": "initial weights", "name": "qwen3-tiny", **counts},
            "sha256": hashlib.sha256(b"first").hexdigest(),
        }.items()
    )
    assert (
        benchmark.items()
        >= {
            **{"what": "benchmark", "name": "chain-hard", "version": 1, **counts},
            "verifier": "strict_box 0.1.0",
            "sha256": hashlib.sha256(made.benchmark.read_bytes()).hexdigest(),
        }.items()
    )
    made._rows("held_out/chain-hard", {"version": 2})
    other = read(table)["inputs"][-1]
    assert (other["state"], other["sha256"]) == ("changed", benchmark["sha256"])
    assert "version" not in other  # it is of the rows that lie there now


def test_a_table_tells_configurations_and_whose_numbers_it_has(made, table):
    told = read(table)
    found = told["configurations"]
    assert (found["runs"], found["unchanged"], found["varying"]) == (1, 1, {})
    assert {"key": "staleness", "value": 32} in found["entries"]
    assert found["objectives"]["respo"]["differs"] == []
    assert told["map"] == {
        "columns": {"7-8 steps": "chain-hard"},
        "rows": [
            {
                **{"model": "Qwen3-tiny", "method": "ReSPO", "staleness": 32, "seed": 1},
                **{"update": 128, "path": f"{made.run.name}/eval/128/BENCHMARK/cell.json"},
            }
        ],
    }
    append(made.folder / "config.yaml")
    found = read(table)["configurations"]
    assert (found["runs"], found["unchanged"], found["entries"]) == (1, 0, [])


def of_two_runs(made):
    """Make a second run and cell, of other rows, and return the names of both cells."""
    first, second = made.run, replace(made.run, staleness=8)
    shutil.copytree(made.folder, second.folder(made.path))
    made.run, made.folder = second, second.folder(made.path)
    made.cell = second.cell(made.path, 128, "chain-hard")
    path = made.folder / "config.yaml"
    path.write_text(path.read_text().replace("staleness: 32", "staleness: 8"))
    made.train()
    made._rows("held_out/chain-hard", {"version": 2})
    made.evaluate()
    return [f"{run.name}/eval/128/chain-hard/cell.json" for run in (first, second)]


def test_in_what_the_sources_differ(made, table):
    names = of_two_runs(made)
    files = {name: sha256_of(made.path / name) for name in names}
    sources.write_sources(made.path, "tiny", [table], "0", files)
    told = read(table)
    assert told["configurations"]["varying"] == {
        "staleness": [{"value": 8, "runs": 1}, {"value": 32, "runs": 1}]
    }
    benchmarks = [one for one in told["inputs"] if one["what"] == "benchmark"]
    assert [(one["state"], one["count"], one["of"]) for one in benchmarks] == [
        ("changed", 1, 2),
        ("unchanged", 1, 2),
    ]


@pytest.mark.parametrize("name", ["metrics.parquet", "branches.parquet"])
def test_a_figure_of_statistics(made, table, name):
    path = f"{made.run.name}/{name}"
    files = {path: sources.source_sha256(made.path / path)}
    sources.write_sources(made.path, "tiny", [table], "0", files)
    told = read(table)
    assert [one["what"] for one in told["inputs"]] == ["training set", "initial weights"]
    assert told["environments"]["training"][0]["torch"] == "2.13"
    assert told["map"]["rows"][0]["path"] == path
    assert told["configurations"]["unchanged"] == 1
    made.train(config_sha256="0")  # trained anew since
    sources.write_sources(
        made.path, "tiny", [table], "0", {path: sources.source_sha256(made.path / path)}
    )
    told = read(table)
    assert told["environments"]["training"] == []
    assert "training" not in told["durations"]


def test_a_table_of_scores(made, table):
    path = f"{made.run.name}/eval/128/chain-hard/scores.parquet"
    sources.write_sources(made.path, "tiny", [table], "0", {path: sha256_of(made.path / path)})
    told = read(table)
    assert [one["what"] for one in told["inputs"]] == [
        *("training set", "initial weights", "benchmark")
    ]
    assert told["inputs"][-1]["verifier"] == "strict_box 0.1.0"
    assert told["environments"]["generation"][0]["engine"] == "local"
    assert told["environments"]["training"][0]["torch"] == "2.13"
    assert told["environments"]["cell"] == []


def test_a_damaged_source_is_one_note(made, table):
    made.cell.write_text("{")
    assert read(table)["warnings"] == [f"{made.cell}: has changed since"]
    (damaged,) = read(made.path)["warnings"]  # without a hash of what it was
    assert damaged.startswith(f"{made.cell}: not valid JSON")


def test_a_table_that_was_edited(table):
    table.write_text(table.read_text().replace("a", "b"))
    assert read(table)["warnings"] == [f"{table}: was changed after it was made"]
    table.write_text("<!-- made from results 0123456789ab -->")
    told = read(table)["warnings"]
    assert told[1].startswith(f"{table}: says that it was made from results 0123456789ab, its rec")


def test_a_file_beside_a_table_is_its_own_target(table):
    """Only what is there: not every table has one."""
    path = table.with_name("table1.contrasts.csv")
    path.write_text("a,made_from\n1,0\n")
    assert read(path)["command"].split()[2] == str(path)


@pytest.mark.parametrize("key", ["sources", "products"])
@pytest.mark.parametrize("name", ["{secret}", "../../secret", "tables/../../../secret"])
def test_a_record_that_names_files_elsewhere_is_refused(made, table, tmp_path, key, name):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = table.with_suffix(".sources.json")
    record = {k: value for k, value in read_json(path).items() if k != "self_sha256"}
    name = name.format(secret=secret)
    write_json(path, record | {key: record[key] | {name: sha256_of(secret)}})
    for asked in (table, path):
        with pytest.raises(UserError, match=rf"{key}: '.*' is no name of a file of this folder"):
            read(asked)


def test_a_pack_with_links_that_lead_out_is_refused(made, table, tmp_path):
    """Results of one's own may: a run was moved to another disk."""
    elsewhere = tmp_path / "elsewhere"
    made.folder.rename(elsewhere)
    made.folder.symlink_to(elsewhere)
    assert read(table)["warnings"] == []
    assert states(read(made.cell)) == dict.fromkeys(ALL_OF_CELL, "unchanged")
    write_json(made.path / "MANIFEST.json", {"files": {}})
    copy = shutil.copy(table, tmp_path / "t.md")
    for path, folder in ((table, None), (made.cell, None), (made.path, None), (copy, made.path)):
        with pytest.raises(UserError, match=r"seed1: leads out of the pack, by a link, and was no"):
            read(Path(path), folder)


def test_a_table_without_record(table):
    table.with_suffix(".sources.json").unlink()
    told = read(table)
    assert told["digits"]
    assert "nothing says what this was made from" in told["warnings"][0]


def test_cells_made_under_other_versions_are_noted(made, table):
    another = made.cell.parents[1] / "chain-easy" / "cell.json"
    cell = {k: v for k, v in read_json(made.cell).items() if k != "self_sha256"}
    cell["made_from"]["environment"]["numpy"] = "3"
    cell["made_from"]["scores"]["verifier"]["version"] = "0.2.0"
    cell["made_from"]["run"]["environments"].append({"torch": "2.14"})
    write_json(another, cell)
    record = sources.read_sources(table.with_suffix(".sources.json"))
    names = [*record["sources"], another.relative_to(made.path).as_posix()]
    files = {name: sha256_of(made.path / name) for name in names}
    table.write_text("")
    sources.write_sources(made.path, "tiny", [table], "0", files)
    told = read(table)
    hard = made.cell.relative_to(made.path).as_posix()
    easy = another.relative_to(made.path).as_posix()
    assert told["warnings"] == [
        f"training was not the same for all sources: torch: 2.14 in 1 ({easy}); 2.13 in 2 "
        f"({easy}, {hard})",
        f"scoring was not the same for all sources: verifier: strict_box 0.2.0 in 1 ({easy}); "
        f"strict_box 0.1.0 in 1 ({hard})",
        f"cell was not the same for all sources: numpy: 3 in 1 ({easy}); 2 in 1 ({hard})",
    ]


def test_a_table_that_was_copied_is_found_by_its_bytes(made, table, tmp_path):
    copy = tmp_path / "paper.md"
    shutil.copy(table, copy)
    told = read(copy)
    assert (told["kind"], told["digits"]) == ("table or figure", read(table)["digits"])
    assert "--study" in told["warnings"][0]
    assert read(copy, made.path) == read(table)
    copy.write_text(copy.read_text() + "\n")
    with pytest.raises(UserError, match=r"is no table or figure of .*tiny as it was made there"):
        read(copy, made.path)


def test_a_figure_of_methods(tmp_path):
    path = tmp_path / "k.png"
    path.write_bytes(b"\x89PNG\0Source\0respo/fig1 drawn from methods 0123456789ab: grpo,aspo\0")
    told = read(path)
    assert (told["kind"], told["methods"]) == ("figure of methods", ["grpo", "aspo"])
    assert told["command"] == (
        "python -m respo.reporting.figure respo/fig1 --methods grpo,aspo --out k.png"
    )


def test_a_report_by_its_record(made, table):
    """The report itself is blamed for what has changed in it."""
    html, report = table.with_suffix(".html"), made.path / "report.html"
    html.write_text("new")
    report.write_text("data:text/html;base64,bmV3")
    names = {"tables/respo/table1.html": sha256_of(html)}
    sources.write_sources(made.path, "tiny", [report], "0123", names, "numpy")
    made.time("report", 4.5)
    told = read(report)
    assert (told["warnings"], told["digits"]) == ([], "0123")
    assert told["contents"] == {"tables/respo/table1.html": "unchanged"}
    found = told["environments"]
    assert found["report"][0]["code"] == environment()["code"]
    assert found["table"][0]["numpy"]
    assert found["training"][0]["torch"] == "2.13"
    assert told["durations"]["report"] == 4.5
    report.write_text("data:text/html;base64,bmV4")
    told = read(report)
    assert told["contents"] == {"tables/respo/table1.html": "unchanged"}
    assert told["warnings"] == [f"{report}: was changed after it was made"]
    html.write_text("newer")
    assert f"{html}: has changed since" in read(report)["warnings"]


def test_a_report_that_is_older_than_a_table(made, table):
    html = table.with_suffix(".html")
    html.write_text("new")
    report = made.path / "report.html"
    report.write_text("data:text/html;base64,b2xk")  # old
    told = read(report)
    assert told["contents"]["tables/respo/table1.html"] == "changed"
    assert told["contents"]["explore.html"] == "missing"
    assert told["warnings"] == [
        f"{made.path}/report.sources.json: is not there, so nothing says what made the report; "
        "make it anew",
        f"{report}: does not show tables/respo/table1.html as it lies there: one of the two has "
        "changed",
    ]
    html.write_text("old")
    assert read(report)["contents"]["tables/respo/table1.html"] == "unchanged"


def test_a_study_counts_what_is_there(made):
    for path in (made.path, made.path / "study.yaml"):
        told = read(path)
        assert (told["kind"], told["there"]) == ("study", 2)
        assert told["expected"] > 100
        assert told["command"] == f"snakemake --config study=tiny results={made.path.parent}"


def test_files_outside_of_a_study_tell_what_they_say_themselves(made, tmp_path):
    for name in ("cell.json", "scores.parquet", "generations.parquet"):
        copy = tmp_path / f"copy-{name}"
        shutil.copy(made.cell.with_name(name), copy)
        told = read(copy)
        assert told["kind"] == name.partition(".")[0]
        assert told["environments"]["generation"][0]["torch"] == "2.13"
        assert told["sampling"]["temperature"] == 1.0
        assert "command" not in told
    shutil.copy(made.folder / "metrics.parquet", tmp_path / "m.parquet")
    assert read(tmp_path / "m.parquet")["recorded"].keys() == {
        *("config_sha256", "data_sha256", "initial_sha256")
    }
    whole = (tmp_path / "m.parquet").read_bytes()
    assert b"log_ratio_mean" in whole
    (tmp_path / "m.parquet").write_bytes(whole.replace(b"log_ratio_mean", b"log_ratio_meal"))
    with pytest.raises(UserError, match=r"m\.parquet: .*footer"):
        read(tmp_path / "m.parquet")
    shutil.copy(made.training_set, tmp_path / "d.parquet")
    assert read(tmp_path / "d.parquet")["rows"]["origin"].startswith("unknown")


def test_relative_paths_and_links(made, monkeypatch, tmp_path):
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(made.cell.parent)
    told = read(Path("cell.json"))
    assert told["command"].startswith(f"cd {tmp_path} && snakemake --force results/tiny/qwen3-")
    monkeypatch.chdir(tmp_path)
    relative = made.cell.relative_to(tmp_path)
    assert read(relative)["command"] == f"snakemake --force {relative} --config study=tiny"
    assert read(Path("results/../results/tiny"))["study"]["folder"] == "results/tiny"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent", None, "no such file or folder"),
        ("a.txt", "x", "is nothing whose origin is recorded"),
        ("results/tiny/logs/a.log", "x", "is the log of a step. Give what the step made"),
        ("results/tiny/logs/../logs/a", "x", "is the log of a step. Give what the step made"),
        ("results/tiny/benchmarks/a.tsv", "x", "is the duration of a step"),
        ("results/tiny/MANIFEST.json", "{}", "lists the files of a pack; `python -m respo.check "),
        ("tiny.tar.gz", "x", r"is an archive. Unpack a pack \(tar xf .*tiny.tar.gz\)"),
        ("results/tiny/eval/x.json", "[]", "is nothing whose origin is recorded"),
        ("a.parquet", "x", "not a readable Parquet file"),
        ("a.png", "x", "carries no mark of what it was made from"),
        ("results/tiny/tables/t.sources.json", "[]", "study: is missing or of another kind"),
    ],
)
def test_anything_else_is_one_message(made, tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    with pytest.raises(UserError, match=message) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("logs", r"holds the logs of steps\. Give what a step made, such as a cell\.json"),
        ("benchmarks/eval", r"holds the durations of steps\. Give what a step made"),
        ("tables", r"is a folder of many results\. Give one of them: respo/table1\.\*$"),
        ("tables/respo", r"is a folder of many results\. Give one of them: table1\.\*$"),
        ("data", r"is a folder of many results\. Give one of them: held_out, train$"),
        ("initial", r"is a folder of many results\. Give one of them: qwen3-tiny$"),
        ("qwen3-tiny", r"is a folder of many results\. Give one of them: empty, respo$"),
        ("qwen3-tiny/empty", r"is a folder of many results\. Give one of them: it is empty$"),
        ("data/held_out", r"one of them: a0, a1, a2, a3, a4, a5, a6, chain-hard\.parquet and 1 mo"),
    ],
)
def test_a_folder_tells_what_lies_in_it(made, table, name, message):
    for made_too in ("logs", "benchmarks/eval", "qwen3-tiny/empty"):
        (made.path / made_too).mkdir(parents=True)
    for count in range(7):
        (made.path / f"data/held_out/a{count}").touch()
    if name == "data":
        (made.path / "data/.hidden").touch()
    with pytest.raises(UserError, match=message) as error:
        read(made.path / name)
    assert str(error.value).startswith(f"{made.path / name}: ")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("respo/tables/respo/table1.md", "respo/tables/respo/table1.md"),
        ("tiny/qwen3-tiny/respo/N32/seed1", "tiny/qwen3-tiny/respo/N32/seed1/train.json"),
        ("tiny", ""),
    ],
)
def test_of_a_study_that_has_not_begun(tmp_path, name, target):
    """In a fresh clone, its configuration tells what it will make."""
    path = tmp_path / "results" / name
    with pytest.raises(UserError) as error:
        read(path)
    study, where = name.partition("/")[0], tmp_path / "results"
    target = f"{where}/{target} " if target else ""
    assert str(error.value) == (
        f"{path}: is not made yet. Make it: snakemake {target}--config study={study} "
        f"results={where}"
    )


RUN = "qwen3-tiny/respo/N32/seed2"


def test_of_a_study_that_nobody_knows(tmp_path):
    with pytest.raises(UserError, match=r"there is no config/studies/mine\.yaml that would say"):
        read(tmp_path / "results/mine/tables/t.md")
    with pytest.raises(UserError, match="no such file or folder, and study tiny makes none"):
        read(tmp_path / "results/tiny/tables/respo/table99.md")


@pytest.mark.parametrize("name", [".", f"{RUN}/train.json", "initial/qwen3-tiny"])
def test_of_a_study_without_study_yaml(made, name):
    """As after one cell: what is there cannot be placed before it is made."""
    (made.path / "study.yaml").unlink()
    path = made.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.touch()
    with pytest.raises(UserError) as error:
        read(path)
    assert str(error.value) == (
        f"{made.path}/study.yaml: is not there, so nothing is told of {path}. Make it: "
        f"snakemake {made.path}/study.yaml --config study=tiny results={made.path.parent}"
    )


def test_a_cell_of_a_study_without_study_yaml(made):
    (made.path / "study.yaml").unlink()
    told = read(made.cell)
    assert told["numbers"]["pass_at_1"] == 0.5
    (warning,) = told["warnings"]
    assert warning.startswith(f"{made.path}/study.yaml: is not there, so only what the file itself")
    assert f"Make it: snakemake {made.path}/study.yaml --config study=tiny" in warning


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("tables/respo/table1.html", "tables/respo/table1.html"),
        ("tables/respo/table1.tex", "tables/respo/table1.tex"),
        ("tables/respo/table1.txt", "tables/respo/table1.html"),
        ("tables/respo/table1.contrasts.csv", "tables/respo/table1.html"),
        ("figures/respo/fig3.pdf", "figures/respo/fig3.pdf"),
        ("figures/respo/fig3.sources.json", "figures/respo/fig3.sources.json"),
        ("figures/respo/fig3", "figures/respo/fig3.png"),
        ("explore.sources.json", "explore.sources.json"),
        ("report.html", "report.html"),
        ("explore.html", "explore.html"),
        ("data/held_out/chain-easy.parquet", "data/held_out/chain-easy.parquet"),
        ("data/train/chain.yaml", "data/train/chain.parquet"),
        (f"{RUN}/metrics.parquet", f"{RUN}/train.json"),
        (f"{RUN}/checkpoints/128", f"{RUN}/train.json"),
        (f"{RUN}/eval/128/chain-easy", f"{RUN}/eval/128/chain-easy/cell.json"),
        (f"{RUN}/eval/128/chain-easy/scores.parquet", f"{RUN}/eval/128/chain-easy/scores.parquet"),
    ],
)
def test_what_is_not_made_yet_names_its_target(made, name, target):
    path = made.path / name
    for written in (made.path / "data/train").iterdir():
        written.unlink()
    with pytest.raises(UserError) as error:
        read(path)
    options = f"--config study=tiny results={made.path.parent}"
    assert str(error.value) == (
        f"{path}: is not made yet. Make it: snakemake {made.path}/{target} {options}"
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tables/respo/table99.md", "table"),
        ("initial/other", "initial"),
        ("qwen3-tiny/respo/N7/seed1", "run"),
        (f"{RUN}/checkpoints/3", "checkpoint"),
        (f"{RUN}/eval/128/aime", "cell"),
    ],
)
def test_what_a_study_never_makes(made, name, kind):
    with pytest.raises(UserError, match=f"no such file, and study tiny has no such {kind}$"):
        read(made.path / name)


def test_a_checkpoint_that_was_deleted_is_made_anew_or_was_made_up(made):
    shutil.rmtree(made.folder / "checkpoints")
    path = made.folder / "checkpoints/128"
    with pytest.raises(UserError, match=r": is not there\. Make it anew: snakemake --force "):
        read(path)
    write_json(made.folder / "train.json", {"synthetic": True})
    for lost in (path, made.path / "tables/respo/table1.md"):
        with pytest.raises(UserError, match=r"is not there, and the results in .* are made up"):
            read(lost)


def test_what_is_left_out_of_a_pack(made):
    (made.path / "MANIFEST.json").write_text("{}")
    path = made.path / RUN / "checkpoints/128"
    with pytest.raises(UserError, match=r"is not in this pack; .*MANIFEST.json lists what is"):
        read(path)


@pytest.mark.parametrize("inside", [True, False])
def test_a_study_that_is_not_there(made, table, tmp_path, inside):
    copy = tmp_path / "t.md"
    shutil.copy(table, copy)
    path = made.cell if inside else copy
    with pytest.raises(UserError, match=r"^tiny: no such folder; --study takes results/STUDY$"):
        read(path, Path("tiny"))
    with pytest.raises(UserError, match=r"has no study\.yaml; --study takes results/STUDY$"):
        read(path, tmp_path)


def test_generations_tell_no_times_of_what_came_later(made):
    for job in ("generate", "score", "cell"):
        made.time(f"eval/{made.run.name}/128/chain-hard.{job}", 7.5)
    own = {"warm start", "training", "generation"}
    assert read(made.cell.with_name("generations.parquet"))["durations"].keys() == own
    scores = read(made.cell.with_name("scores.parquet"))["durations"]
    assert scores.keys() == own | {"scoring"}
    assert read(made.cell)["durations"].keys() == own | {"scoring", "cell"}


def test_the_folder_of_synthetic_results_is_made_up_anew(made):
    made.train(synthetic=True)
    command = f"python -m benchmarks.synthetic --study tiny --out {made.path.parent}"
    for path in (made.cell, made.folder, made.folder / "metrics.parquet", made.path):
        told = read(path)
        assert (told["command"], told["synthetic"]) == (command, True)
        assert told["warnings"] == ["its numbers are made up (synthetic)"]
    report = made.path / "report.html"
    report.write_text("")
    assert read(report)["command"] == command


def test_a_cell_of_others_may_say_anything(tmp_path):
    path = tmp_path / "cell.json"
    path.write_text(json.dumps({"benchmark": "b", "made_from": {"verifier": "x", "scores": [1]}}))
    told = read(path)
    assert told["environments"] == {}
    assert told["verifier"] is None


def test_made_up_results_say_so(made, table):
    table.write_text("<!-- made from results synthetic-0123456789ab -->")
    sources.write_sources(made.path, "tiny", [table], "synthetic-0123456789ab", {})
    told = read(table)
    assert told["warnings"] == ["its numbers are made up (synthetic)"]
    assert told["command"].startswith("python -m benchmarks.synthetic --study tiny --out ")
    table.with_suffix(".sources.json").unlink()
    assert read(table)["warnings"][0] == "its numbers are made up (synthetic)"
    copy = made.path.parent / "t.md"
    shutil.copy(table, copy)
    assert read(copy)["warnings"][0] == "its numbers are made up (synthetic)"


def test_a_pack_is_drawn_again_with_the_numbers_that_lie_in_it(made, table):
    (made.path / "reference").mkdir()
    assert read(table)["redraw"].endswith(f" --reference {made.path}/reference")
