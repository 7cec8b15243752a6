import hashlib

import pytest

from respo.explain.configuration import of_run, of_runs
from respo.explain.text import lines
from respo.explain.versions import version_lines

CELL = {
    "path": "results/s/m/respo/N8/seed1/eval/4/easy/cell.json",
    "kind": "cell",
    "name": "easy",
    "study": {"name": "s", "title": "A study", "folder": "results/s"},
    "run": {"model": "m", "method": "respo", "staleness": 8, "seed": 1},
    "update": 4,
    "numbers": {"pass_at_1": 0.25, "standard_error": 0.02, "problems": 10, "samples": 4},
    "settings": {
        "objective": {
            "name": "respo",
            "parameters": {"lambda_pos": 1.5, "lambda_neg": 2.0},
            **{"code": "aa", "code_now": "aa"},
            "differs": [{"key": "lambda_pos", "value": 1.5, "default": 1.0}],
        },
        "entries": [
            {"key": "model.architecture.hidden_size", "value": 64},
            {"key": "staleness", "value": 8},
            {"key": "training.updates", "value": 4, "study": 8, "from": "models/m.yaml"},
            {"key": "training.mini_batch", "value": 2},
            {"key": "training.kl_coefficient", "value": 0.1, "default": 0.0},
            {"key": "training.reward", "value": "math", "default": "math"},
        ],
    },
    "sampling": {"top_p": 0.7},
    "verifier": {"name": "strict_box", "version": "0.1.0"},
    "made_from": [
        {
            "what": "benchmark",
            "path": "results/s/data/held_out/easy.parquet",
            "sha256": "0123456789ab" + "b" * 52,
            "state": "unchanged",
        },
        {
            "what": "scores",
            "path": "results/s/m/scores.parquet",
            "sha256": "c" * 64,
            "state": "changed",
        },
    ],
    "benchmark_rows": {
        "origin": "a/b on the hub at v1",
        "version": 2,
        "files": {"commit": "d" * 40, "sha256": {"f.parquet": "e" * 64}},
    },
    "environments": {
        "training": [{"code": f"{'1' * 40}-dirty", "torch": "2"}],
        "cell": [{"code": "2"}],
    },
    "training": {
        "starts": [{"update": 0, "at": "one"}, {"update": 2, "at": "two"}],
        "ended": "three",
    },
    "durations": {"training": 7500.0, "generation": 7.25, "scoring": None},
    "command": "snakemake --force results/s/m/cell.json --config study=s",
    "warnings": ["beware"],
}


def test_a_cell():
    assert list(lines(CELL)) == [
        "results/s/m/respo/N8/seed1/eval/4/easy/cell.json: cell of benchmark easy",
        "  study s: A study, in results/s",
        "  model m, method respo, N = 8, seed 1, update 4",
        "  pass@1 25.0 ± 2.0 %, 10 problems x 4 samples",
        "",
        "Configuration",
        "  objective respo, formula aa, as here",
        "    lambda_pos 1.5 (published 1.0)",
        "    all others as published",
        "  training.updates 4 (no default, by models/m.yaml; the study has 8)",
        "  training.kl_coefficient 0.1 (default 0.0)",
        "  chosen, without a default: staleness 8, mini_batch 2",
        "  all else is as by default, or of the model (--all lists every setting)",
        "  sampling: top_p 0.7",
        "  verifier: strict_box 0.1.0",
        "",
        "Made from",
        "  benchmark: data/held_out/easy.parquet, 0123456789ab, unchanged",
        "    a/b on the hub at v1, version 2",
        f"    commit {'d' * 40}",
        "    f.parquet, eeeeeeeeeeee",
        "  scores: m/scores.parquet, cccccccccccc, CHANGED since",
        "",
        "Versions and machine",
        "  code: 111111111111 with changes that are not committed (training); 2 (cell)",
        "  torch: 2",
        "",
        "Time",
        "  training (work): 2 h 05 min",
        "  generation (job): 7.2 s",
        "  training was started one from the start",
        "  training was started two after update 2",
        "  training ended three",
        "",
        "Make it again",
        "  snakemake --force results/s/m/cell.json --config study=s",
        "",
        "Note",
        "  beware",
    ]


def test_all_settings():
    found = list(lines(CELL, everything=True))
    start = found.index("Configuration")
    assert found[start + 1 : start + 11] == [
        "  objective respo, formula aa, as here",
        "    lambda_pos 1.5 (published 1.0)",
        "    lambda_neg 2.0 (as published)",
        "  model.architecture.hidden_size 64 (no default)",
        "  staleness 8 (no default)",
        "  training.updates 4 (no default, by models/m.yaml; the study has 8)",
        "  training.mini_batch 2 (no default)",
        "  training.kl_coefficient 0.1 (default 0.0)",
        "  training.reward math (the default)",
        "  sampling: top_p 0.7",
    ]


def objective(now="aa", **differs):
    """One with two parameters, of which those that differ were published as 0."""
    return {
        **{"name": "o", "parameters": {"a": 1, "b": 2}, "code": "aa", "code_now": now},
        "differs": [{"key": key, "value": 1, "default": 0} for key in differs],
    }


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (objective(), ["objective o, all parameters as published, formula aa, as here"]),
        (objective("bb"), ["objective o, all parameters as published, formula aa"]),
        (
            objective(a=1, b=1),
            ["objective o, formula aa, as here", "  a 1 (published 0)", "  b 2 (published 0)"],
        ),
        # Of one's own, which is not here: nothing is known of what is published.
        (objective(None), ["objective o, formula aa", "  a 1", "  b 2"]),
    ],
)
def test_parameters_of_an_objective(told, expected):
    assert list(of_run({"objective": told}, False)) == expected


def test_settings_of_many_runs():
    told = {
        **{"runs": 3, "unchanged": 2, "objectives": {"m1": objective(), "m2": objective(a=1, b=1)}},
        "entries": [{"key": "training.updates", "value": 4}],
        "varying": {
            "staleness": [{"value": 1, "runs": 1}, {"value": 8, "runs": 1}],
            "train_data.rows": [{"value": 1, "runs": 2}],
        },
    }
    assert list(of_runs(told, False)) == [
        "of 2 of 3 runs; that of the others has changed or is not there",
        "m1: objective o, all parameters as published, formula aa, as here",
        "m2: objective o, formula aa, as here",
        "  a 1 (published 0)",
        "  b 2 (published 0)",
        "chosen, without a default: updates 4",
        "staleness: 1 in 1 run; 8 in 1 run",
    ]
    assert next(of_runs(told | {"unchanged": 3}, True)) == "of 3 runs"
    assert list(of_runs(told, True))[-1] == "train_data.rows: 1 in 2 runs"
    assert list(of_runs(told | {"runs": 0}, True)) == []


def test_a_line_break_stays_within_its_line():
    settings = {"entries": [{"key": "training.reward", "value": "a\nb", "default": "c"}]}
    told = {"path": "p", "kind": "run", "settings": settings, "warnings": ["one:\ntwo"]}
    found = list(lines(told | {"study": {"name": "s", "title": "A\n study", "folder": "f"}}))
    assert found[1] == "  study s: A study, in f"
    assert '  training.reward "a\\nb" (default c)' in found
    assert found[-2:] == ["  one:", "  two"]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("listed", "aaaaaaaaaaaa, unchanged by its SHA256SUMS (too large to read here)"),
        ("not compared", "aaaaaaaaaaaa, not compared (too large to read here, and no SHA256SUMS)"),
        ("no record", "not compared (no hash recorded)"),
    ],
)
def test_what_was_not_compared_is_not_called_unchanged(state, words):
    sha256 = None if state == "no record" else "a" * 64
    one = {"what": "checkpoint", "path": "c", "sha256": sha256, "state": state}
    told = {"path": "p", "kind": "cell", "made_from": [one], "warnings": []}
    assert f"  checkpoint: c, {words}" in lines(told)


@pytest.mark.parametrize(
    ("codes", "here", "words"),
    [
        (["1" * 40], "1" * 40, "the same"),
        (["1" * 40, "2" * 40], "1" * 40, "the same as some"),
        (["1" * 40], "2" * 40, "another revision, 222222222222"),
        (["1" * 40], f"{'1' * 40}-dirty", f"another revision, {'1' * 12} with changes that are n"),
        ([f"{'1' * 40}-dirty"], f"{'1' * 40}-dirty", "the same revision, but its changes may be"),
        (["1" * 40], "unknown", "its revision is not known (unknown)"),
    ],
)
def test_the_checkout_is_compared_with_the_revisions_that_made_it(codes, here, words):
    found = list(version_lines({"training": [{"code": code} for code in codes]}, False, here))
    assert found[1].startswith(f"this checkout: {words}")


def test_made_up_results_are_not_made_by_training():
    told = {"path": "p", "kind": "cell", "command": "python -m x", "synthetic": True}
    assert list(lines(told | {"warnings": ["its numbers are made up (synthetic)"]}))[1:] == [
        "",
        "Make it again",
        "  no training made these results; the whole folder was made up by",
        "  python -m x",
        "",
        "Note",
        "  its numbers are made up (synthetic)",
    ]


def hashed(text):
    return hashlib.sha256(text.encode()).hexdigest()


def sources(states):
    names = [f"r{i}/cell.json" for i in range(len(states))]
    files = {
        name: {"sha256": hashed(name), "state": state}
        for name, state in zip(names, states, strict=True)
    }
    rows = [
        {"model": "M", "method": "R", "staleness": 8, "seed": i, "update": 4, "path": name}
        for i, name in enumerate(names)
    ]
    return {
        "path": "p",
        "kind": "table",
        "name": "x/y",
        "digits": "0123",
        "sources": {"files": files, "by_run": {name: [name] for name in names}},
        "map": {"columns": {"Hard": "chain-hard"}, "rows": rows},
        "differing": {},
        "environments": {"training": [{"torch": "1"}, {"torch": "2"}]},
        "durations": {"training": 200.0, "scoring": 3.0, "table": 1.0},
        "counted": {"training": 7, "scoring": 1},
        "warnings": [],
    }


def test_sources_of_a_table():
    found = list(lines(sources(["unchanged"] * 7)))
    assert found == [
        "p: table x/y",
        "",
        "Sources",
        "  made from results 0123",
        "  7 files, of 7 runs: all unchanged since",
        "",
        "Rows and columns",
        "  Hard: chain-hard",
        "  M, R, N = 8, seed 6, update 4: r6/cell.json",
        "  and 6 more (--all lists them)",
        "",
        "Versions and machine",
        # Two runs, and not one run in two environments.
        "  torch: 1 (training); 2 (training)",
        "",
        "Time",
        "  training (work, sum of 7): 3.3 min",
        "  scoring (job): 3.0 s",
        "  table (job): 1.0 s",
    ]


def test_every_source_of_a_table():
    told = sources(["unchanged", "changed", "missing", "no file"])
    found = list(lines(told, everything=True))
    count = "1 unchanged since, 1 CHANGED since, 1 not there any more, 1 no regular file"
    words = ["unchanged", "CHANGED since", "not there", "no regular file, and was not read"]
    start = found.index("Sources")
    assert found[start + 2 : start + 7] == [
        f"  4 files, of 4 runs: {count}",
        *(f"  r{i}/cell.json, {hashed(f'r{i}/cell.json')[:12]}, {words[i]}" for i in range(4)),
    ]
    rows = [line for line in found if line.startswith("  M, R")]
    assert rows == [f"  M, R, N = 8, seed {i}, update 4: r{i}/cell.json" for i in range(4)]
    assert not any("--all" in line for line in found)


def test_one_source_of_no_run():
    told = sources(["unchanged"])
    told["sources"]["by_run"] = {}
    assert "  1 file: all unchanged since" in list(lines(told))


def test_rows_and_weights_of_a_table():
    one = {
        **{"what": "benchmark", "name": "x", "sha256": hashed("x"), "state": "unchanged"},
        **{"count": 1, "of": 2, "origin": "a/b on the hub at v1", "version": 3},
        "verifier": "strict_box 0.1.0",
    }
    other = one | {"sha256": hashed("y"), "state": "changed"}
    del other["origin"], other["verifier"]
    told = {"path": "p", "kind": "table", "inputs": [one, other, one | {"count": 2}]}
    found = list(lines(told | {"warnings": []}))
    assert found[found.index("Made from") + 1 :] == [
        f"  benchmark x: {hashed('x')[:12]} in 1 of 2, unchanged",
        "    a/b on the hub at v1, version 3",
        "    verifier strict_box 0.1.0",
        f"  benchmark x: {hashed('y')[:12]} in 1 of 2, CHANGED since",
        f"  benchmark x: {hashed('x')[:12]}, unchanged",
        "    a/b on the hub at v1, version 3",
        "    verifier strict_box 0.1.0",
    ]


def test_versions_that_differ_name_their_steps():
    found = {"training": [{"torch": "1"}, {"torch": "2"}], "generation": [{"torch": "2", "z": "3"}]}
    assert list(version_lines(found, of_one=True)) == [
        "torch: 1 (training); 2 (training, generation)",
        "z: 3",
        "training was made in 2 environments, one after the other",
    ]
    assert list(version_lines({}, of_one=True)) == []


def test_what_is_outside_of_a_study():
    told = {"path": "p", "kind": "metrics", "recorded": {"config_sha256": "x"}, "warnings": []}
    assert list(lines(told)) == [
        "p: metrics of a run",
        "",
        "Made from",
        "  config_sha256: x",
    ]


def test_methods_a_report_and_rows():
    told = {
        "path": "p",
        "kind": "figure of methods",
        "name": "respo/fig1",
        "digits": "01",
        "methods": ["grpo", "aspo"],
        "warnings": [],
    }
    assert "  the formulas and parameters of grpo, aspo, 01" in lines(told)
    told = {"path": "p", "kind": "report", "contents": {"a.html": "changed"}, "warnings": []}
    assert "  a.html: CHANGED since" in lines(told)
    rows = {"sha256": hashed("rows"), "origin": "file f", "configuration_state": "changed"}
    found = list(
        lines(
            {
                "path": "p",
                "kind": "data",
                "name": "x",
                "side": "train",
                "rows": rows,
                "warnings": [],
            }
        )
    )
    assert found == [
        "p: training set x",
        "",
        "Made from",
        f"  this file: {hashed('rows')[:12]}",
        "  file f",
        "  its configuration has changed since",
    ]
