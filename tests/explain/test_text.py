import pytest

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
            **{"name": "respo", "parameters": {"lambda_pos": 1.5}, "code": "aa", "code_now": "aa"},
            "differs": [{"key": "lambda_pos", "value": 1.5, "default": 1.0}],
        },
        "differs": [{"key": "training.kl_coefficient", "value": 0.1, "default": 0.0}],
        "beside_study": [
            {"key": "training.updates", "value": 4, "study": 8, "from": "models/m.yaml"}
        ],
        "main": {"updates": 4, "staleness": 8},
        "chosen": {"staleness": 8, "seed": 1},
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
        "  objective respo (lambda_pos 1.5), formula aa, as here",
        "    lambda_pos 1.5: default 1.0",
        "  updates 4, staleness 8",
        "  training.kl_coefficient 0.1: default 0.0",
        "  training.updates 4: by models/m.yaml; the study has 8",
        "  --all lists every setting that the study's files chose",
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
    assert "  staleness 8" in found
    assert not any("--all" in line for line in found)


def test_a_line_break_stays_within_its_line():
    settings = {
        "main": {"reward": "a\nb"},
        **{"differs": [], "beside_study": [], "chosen": {"seed": 1}},
    }
    told = {"path": "p", "kind": "run", "settings": settings, "warnings": ["one:\ntwo"]}
    found = list(lines(told | {"study": {"name": "s", "title": "A\n study", "folder": "f"}}))
    assert found[1] == "  study s: A study, in f"
    assert '  reward "a\\nb"' in found
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


def sources(states):
    files = {f"r{i}/cell.json": {"sha256": "a" * 64, "state": s} for i, s in enumerate(states)}
    runs = {f"r{i}": [f"r{i}/cell.json"] for i in range(len(states))}
    return {
        "path": "p",
        "kind": "table",
        "name": "x/y",
        "digits": "0123",
        "sources": {"files": files, "by_run": runs},
        "differing": {},
        "environments": {"training": [{"torch": "1"}, {"torch": "2"}]},
        "warnings": [],
    }


def test_sources_of_a_table():
    found = list(lines(sources(["unchanged"] * 7)))
    assert found[:5] == [
        "p: table x/y",
        "",
        "Sources",
        "  made from results 0123",
        "  7 files, of 7 runs, all unchanged since",
    ]
    assert found[5:11] == [
        *(f"  r{i}: 1 file" for i in range(5)),
        "  and 2 more runs (--all lists every file)",
    ]
    # Two runs, and not one run in two environments.
    assert not any("one after the other" in line for line in found)
    changed = list(lines(sources(["unchanged", "changed", "missing"]), everything=True))
    assert "  3 files, of 3 runs, 1 unchanged since" in changed
    assert "  r0/cell.json, aaaaaaaaaaaa, unchanged" in changed
    assert "  r1/cell.json, aaaaaaaaaaaa, CHANGED since" in changed
    assert "  r2/cell.json, aaaaaaaaaaaa, not there" in changed


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
    rows = {"sha256": "a" * 64, "origin": "file f", "configuration_state": "changed"}
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
        "  this file: aaaaaaaaaaaa",
        "  file f",
        "  its configuration has changed since",
    ]
