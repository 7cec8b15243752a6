"""A miniature study from prompts to the table, through snakemake, in under a minute."""

import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from respo.provenance.read import read

ROOT = Path(__file__).parents[2]
PAGES = ("explore.html", "explore.sources.json", "report.html", "report.sources.json")
TABLES = ["respo/table1", "respo/table4", "respo/table6", "maspo/table7"]
FIGURES = ["respo/fig1", "respo/fig3"]
RUN = "results/mini/mini/{}/N2/seed1"

pytestmark = pytest.mark.integration


def snakemake(folder, *arguments, config=()):
    settings = ["--config", "study=mini", *config]
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *settings, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def would_run(folder, *arguments, config=()):
    """Return the rules that a start would run, from a dry run."""
    result = snakemake(folder, "--dry-run", "--quiet", "rules", *arguments, config=config)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [line.split() for line in (result.stdout + result.stderr).splitlines()]
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}


@pytest.fixture(scope="module")
def study(mini, tmp_path_factory):
    """A checkout with the miniature study, run."""
    folder = tmp_path_factory.mktemp("checkout")
    config = mini.copy_project(folder)
    mini.add_study(config, tables=TABLES, figures=FIGURES)
    result = snakemake(folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def scores(study, method, benchmark):
    path = study / RUN.format(method) / "eval" / "4" / benchmark / "scores.parquet"
    return pq.read_table(path).to_pydict()


def test_the_table_says_what_the_scores_say(study):
    with (study / "results/mini/tables/respo/table1.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"grpo", "respo"}
    for method, row in rows.items():
        # Each problem has the same number of samples, so pass@1 is the plain mean.
        means = [
            sum(correct) / len(correct)
            for correct in (scores(study, method, name)["correct"] for name in ("easy", "hard"))
        ]
        assert float(row["easy_pass_at_1"]) == pytest.approx(means[0])
        assert float(row["hard_pass_at_1"]) == pytest.approx(means[1])
        assert float(row["macro_pass_at_1"]) == pytest.approx(sum(means) / 2)
        assert 0 < sum(means) < 2


def test_scores_are_strict_box_verdicts_on_the_generations(study):
    folder = study / RUN.format("respo") / "eval" / "4" / "easy"
    generations = pq.read_table(folder / "generations.parquet").to_pydict()
    assert len(generations["response"]) == 20
    verdicts = scores(study, "respo", "easy")["correct"]
    for response, answer, verdict in zip(
        generations["response"], generations["answer"], verdicts, strict=True
    ):
        # Answers are one digit, so the last box decides and holds nothing nested.
        last = response.rpartition("\\boxed{")[2].partition("}")
        assert verdict == (("\\boxed{" in response) and last[0] == answer and last[1] == "}")


def test_everything_is_there(study):
    results = study / "results/mini"
    tables = [f"tables/{name}.md" for name in TABLES]
    for name in (*tables, "tables/respo/table1.contrasts.csv", *PAGES):
        assert (results / name).stat().st_size > 0
    for name in ("fig1", "fig3"):
        assert (results / f"figures/respo/{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (results / f"figures/respo/{name}.pdf").read_bytes().startswith(b"%PDF")
    run = study / RUN.format("respo")
    assert pq.read_table(run / "metrics.parquet").column("update").to_pylist() == [1, 2, 3, 4]
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["2", "4"]
    assert json.loads((run / "train.json").read_text())["update"] == 4
    # Each job leaves its log and its times.
    assert (results / "logs/train/mini/respo/N2/seed1.log").exists()
    assert (results / "benchmarks/train/mini/respo/N2/seed1.tsv").exists()


def test_every_result_tells_where_it_comes_from(study, monkeypatch):
    monkeypatch.chdir(study)
    results = Path("results/mini")
    cell = f"{RUN.format('respo')}/eval/4/easy"
    products = [f"tables/{name}.tex" for name in TABLES]
    products += [f"figures/{name}.pdf" for name in FIGURES]
    for path in (
        *(
            Path(cell) / f"{name}"
            for name in ("cell.json", "scores.parquet", "generations.parquet")
        ),
        *(Path(RUN.format("grpo")) / name for name in (".", "metrics.parquet", "checkpoints/4")),
        *(results / name for name in (*products, "explore.html", "report.html", ".")),
        *(results / name for name in ("initial/mini", "data/train/chain.parquet")),
    ):
        told = read(path)
        assert told["warnings"] == [], path
        assert {one["state"] for one in told.get("made_from", ())} <= {"unchanged"}, path
        files = told.get("sources", {"files": {}})["files"].values()
        assert {one["state"] for one in files} <= {"unchanged", None}, path
    told = read(Path(cell) / "cell.json")
    assert told["command"] == f"snakemake --force {cell}/cell.json --config study=mini"
    assert len(told["made_from"]) == 7
    assert all(told["durations"][step] > 0 for step in ("training", "generation", "scoring"))
    assert [start["update"] for start in told["training"]["starts"]] == [0]
    table = read(results / "tables/respo/table1.md")
    # Two runs, each with two cells, the study, and the papers' numbers.
    assert len(table["sources"]["by_run"]) == 2
    assert len(table["sources"]["files"]) == 2 * 2 + 2


def test_nothing_is_left_to_do(study):
    assert would_run(study) == {}


def test_touching_files_remakes_nothing(study):
    for path in [*study.glob("results/**/*"), *study.glob("config/**/*")]:
        if path.is_file():
            path.touch()
    assert would_run(study) == {}


def test_a_comment_remakes_nothing(study):
    for path in [*study.glob("workflow/rules/*.smk"), *study.glob("config/*/*.yaml")]:
        path.write_text(path.read_text() + "\n# a comment\n")
    assert would_run(study) == {}


def test_another_parameter_remakes_the_runs_of_its_method_only(study):
    path = study / "config/methods/respo.yaml"
    before = path.read_text()
    path.write_text(before.replace("lambda_pos: 2.0", "lambda_pos: 1.5"))
    try:
        todo = would_run(study)
    finally:
        path.write_text(before)
    assert todo["train_local"] == 1
    assert todo["run_config"] == 1
    assert todo["cell"] == 2
    assert "warm_start" not in todo


def test_another_label_remakes_no_run(study):
    path = study / "config/methods/respo.yaml"
    before = path.read_text()
    path.write_text(before.replace("label: ReSPO", "label: Reshaped"))
    try:
        todo = would_run(study)
    finally:
        path.write_text(before)
    assert "train_local" not in todo
    assert "cell" not in todo
    assert todo["table_respo_table1"] == 1


def test_results_of_another_configuration_are_made_anew(study):
    """A seed's folder filled with another seed's results, or another study's, without memory."""
    memory = study / ".snakemake"
    memory.rename(study / "memory")
    config = study / RUN.format("respo") / "config.yaml"
    before = config.read_text()
    config.write_text(before.replace("seed: 1", "seed: 2"))
    train = config.with_name("train.json")
    trained = train.read_bytes()
    record = json.loads(trained) | {
        "config_sha256": hashlib.sha256(config.read_bytes()).hexdigest()
    }
    del record["self_sha256"]
    train.write_text(json.dumps(record))
    # Without memory it goes by times and hashes; an earlier test touched the files in any order.
    now = time.time()
    for path in study.glob("results/**/*"):
        os.utime(path, (now, now))
    try:
        todo = would_run(study)
        assert config.read_text() == before
    finally:
        train.write_bytes(trained)
        os.utime(train, (now, now))
        shutil.rmtree(memory)
        (study / "memory").rename(memory)
    assert todo["train_local"] == 1
    assert todo["cell"] == 2
    assert todo["table_respo_table1"] == 1
    # With its memory, snakemake knows the text to be that of the training.
    assert would_run(study) == {}


def test_a_failed_generation_leaves_no_cell_of_the_old_responses(study):
    config = study / "config/benchmarks/hard.yaml"
    before = config.read_text()
    checkpoint = study / RUN.format("respo") / "checkpoints" / "4"
    folder = study / RUN.format("respo") / "eval" / "4" / "hard"
    cell = f"{RUN.format('respo')}/eval/4/hard/cell.json"
    config.write_text(before.replace("samples: 2", "samples: 3"))
    checkpoint.rename(checkpoint.with_name("away"))
    try:
        result = snakemake(study, "--", cell)
        assert result.returncode == 1
        assert "checkpoints/4: the checkpoint is missing" in result.stdout + result.stderr
        assert list(folder.glob("[!.]*")) == []
    finally:
        config.write_text(before)
        checkpoint.with_name("away").rename(checkpoint)
    assert snakemake(study).returncode == 0
    assert json.loads((folder / "cell.json").read_text())["samples"] == 2
    assert would_run(study) == {}
    # The old responses were not lost.
    log = study / "results/mini/logs/eval/mini/respo/N2/seed1/4/hard.generate.log"
    assert log.read_text() == "20/20 responses are there already\n"


def test_a_raised_k_generates_the_missing_samples(study):
    config = study / "config/benchmarks/hard.yaml"
    before = config.read_text()
    folder = study / RUN.format("grpo") / "eval" / "4" / "hard"
    cell = f"{RUN.format('grpo')}/eval/4/hard/cell.json"
    log = study / "results/mini/logs/eval/mini/grpo/N2/seed1/4/hard.generate.log"
    config.write_text(before.replace("samples: 2", "samples: 3"))
    try:
        assert snakemake(study, "--", cell).returncode == 0
        assert log.read_text() == "20/30 responses are there already\n"
        assert json.loads((folder / "cell.json").read_text())["samples"] == 3
        raised = pq.read_table(folder / "generations.parquet").to_pylist()
        shutil.rmtree(folder)
        assert snakemake(study, "--", cell).returncode == 0
        assert log.read_text() == ""
        assert pq.read_table(folder / "generations.parquet").to_pylist() == raised
    finally:
        config.write_text(before)
    assert snakemake(study, "--", cell).returncode == 0
    assert log.read_text() == "20/20 responses are there already\n"
    assert json.loads((folder / "cell.json").read_text())["samples"] == 2
    assert snakemake(study).returncode == 0
    assert would_run(study) == {}


def test_a_missing_intermediate_file_is_made_anew(study):
    (study / RUN.format("grpo") / "train.json").unlink()
    todo = would_run(study)
    assert (todo["train_local"], todo["cell"]) == (1, 2)
    assert snakemake(study).returncode == 0
    assert would_run(study) == {}


def test_a_study_of_baselines_alone(study):
    only = {
        "title": "As it comes",
        "baselines": ["mini"],
        "benchmarks": ["easy"],
        "evaluation": {"temperature": 1.0, "top_p": 0.7, "seed": 0},
        "tables": ["respo/table1"],
    }
    (study / "config/studies/only.yaml").write_text(yaml.safe_dump(only))
    result = snakemake(study, config=["study=only"])
    assert result.returncode == 0, result.stdout + result.stderr
    with (study / "results/only/tables/respo/table1.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["method"] == "baseline"
    assert (study / "results/only/report.html").exists()


def test_a_table_without_rows_is_refused_before_any_work(study):
    config = study / "config/studies"
    mini = yaml.safe_load((config / "mini.yaml").read_text())
    (config / "bad.yaml").write_text(yaml.safe_dump(mini | {"tables": ["aspo/table2"]}))
    result = snakemake(study, "--dry-run", config=["study=bad"])
    assert result.returncode != 0
    reason = "shows benchmarks with verifier code, and the study has none; take the table out"
    assert f"error: config/studies/bad.yaml: tables: aspo/table2 {reason}" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_cell_can_be_made_at_another_checkpoint(study):
    cell = RUN.format("grpo") + "/eval/2/easy/cell.json"
    assert would_run(study, "--", cell) == {"generate_local": 1, "score": 1, "cell": 1, "total": 3}


@pytest.fixture
def own_folder(tmp_path):
    """The two files of the README's example."""
    readme = (ROOT / "README.md").read_text()
    for language, name in (("python", "sqrt_is.py"), ("yaml", "sqrt_is.yaml")):
        block = readme.split(f"```{language}\n")[1].split("```")[0]
        (tmp_path / name).write_text(block)
    return tmp_path


def test_a_method_of_ones_own_joins_the_study_from_outside_the_package(study, own_folder):
    own = [f"own_methods={own_folder}"]
    changed = would_run(study, config=own)
    assert (changed["train_local"], changed["cell"]) == (1, 2)
    result = snakemake(study, config=own)
    assert result.returncode == 0, result.stdout + result.stderr
    with (study / "results/mini/tables/respo/table1.csv").open() as file:
        assert [row["method"] for row in csv.DictReader(file)] == ["grpo", "respo", "sqrt_is"]
    run = yaml.safe_load((study / RUN.format("sqrt_is") / "config.yaml").read_text())
    assert run["objective"] == {"objective": "sqrt_is", "parameters": {"power": 0.5}}

    formula = own_folder / "sqrt_is.py"
    text = formula.read_text()
    formula.write_text(text + "# a comment\n")
    assert would_run(study, config=own) == {}
    formula.write_text(text.replace("power * log_ratio_BT", "2 * power * log_ratio_BT"))
    assert would_run(study, config=own)["train_local"] == 1
    # Without the folder: study.yaml, tables, figures, explore.html, the report and `all`.
    shown = len(TABLES) + len(FIGURES)
    assert would_run(study)["total"] <= shown + 4


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("sqrt_is.py", "import nothing_like_it", "sqrt_is.py: ModuleNotFoundError"),
        ("grpo.yaml", "label: mine", "grpo.yaml: .*methods/grpo.yaml has this name already"),
        ("sqrt_is.yaml", "label: mine", "sqrt_is.yaml: objective: is missing"),
        ("my method.yaml", "label: mine", "my method.yaml: the name of a method is letters"),
    ],
)
def test_a_bad_file_of_ones_own_is_named_before_any_work(study, own_folder, name, text, message):
    (own_folder / name).write_text(text)
    result = snakemake(study, "--dry-run", config=[f"own_methods={own_folder}"])
    assert result.returncode != 0
    assert re.search(f"^error: .*{message}", result.stdout + result.stderr, re.MULTILINE)
