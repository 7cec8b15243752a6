import json
import shutil

import pyarrow as pa
import pytest

from respo.cli import UserError
from respo.files import sha256_of, write_json
from respo.parquet import made_from, read_parquet, write_parquet
from respo.reporting.results import Results


def test_a_folder_without_study_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nowhere/study\.yaml: no such file; --study takes"):
        Results(tmp_path / "nowhere")


def test_reads_a_cell_and_tells_a_missing_one(folder):
    made = folder()
    made.cell("easy", [2, 1], "grpo")
    results = made.results
    assert results.cell(made.run("grpo"), "easy").accuracy() == {"easy-0": 1.0, "easy-1": 0.5}
    assert results.cell(made.run("grpo"), "hard") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pass_at_1": "0.75"}, "pass_at_1: Input should be a valid number"),
        ({"pass_at_1": 0.5}, "pass_at_1: is not the mean over the problems"),
        ({"pass_at_1": None}, "pass_at_1: "),
        ({"responses": 5}, "responses: is not the sum"),
        ({"responses": -4}, "responses: "),
        ({"problems": []}, "problems: "),
        ({"problems": [{"id": "a", "correct": 3, "samples": 2}]}, "more correct samples"),
        ({"problems": [{"id": "a", "correct": 0, "samples": 0}]}, "problems.0.samples: "),
        ({"problems": [{"id": "a", "correct": 1, "samples": 2}] * 2}, "an id stands twice"),
        ({"study": "other"}, "study: is 'other', but the path belongs to 'tried'"),
        ({"model": "large"}, "model: is 'large'"),
        ({"method": "respo"}, "method: is 'respo'"),
        ({"staleness": 16}, "staleness: is 16, but the path belongs to 8"),
        ({"seed": 2}, "seed: is 2"),
        ({"update": 16}, "update: is 16"),
        ({"benchmark": "hard"}, "benchmark: is 'hard'"),
    ],
)
def test_a_damaged_or_misplaced_cell_is_named(folder, changes, message):
    made = folder()
    path = made.cell("easy", [2, 1], "grpo", changes=changes)
    with pytest.raises(UserError) as error:
        made.results.cell(made.run("grpo"), "easy")
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert str(error.value).endswith("Delete it and make it anew.")


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "[" * 10**5, '{"study": "tried"}'])
def test_a_cell_that_is_no_cell_is_named(folder, text):
    made = folder()
    path = made.cell("easy", [2, 1], "grpo")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"cell\.json: .*Delete it and make it anew"):
        made.results.cell(made.run("grpo"), "easy")


def test_further_keys_of_a_cell_are_left_alone(folder):
    made = folder()
    made.cell("easy", [2, 1], "grpo", changes={"pass_at_2": 1.0})
    assert made.results.cell(made.run("grpo"), "easy") is not None


def test_tables_show_the_last_evaluated_update(folder):
    evaluation = {"updates": [32, 16], "temperature": 1.0, "top_p": 0.7, "seed": 0}
    made = folder(checkpoints=[16, 32], evaluation=evaluation, baselines=["small"])
    assert made.results.update(made.run("grpo")) == 32
    baseline = made.run("baseline", staleness=0, seed=0)
    assert made.results.update(baseline) == 0
    made.cell("easy", [2, 1], "baseline", staleness=0, seed=0)
    assert made.results.cell(baseline, "easy").pass_at_1 == 0.75


def test_curves_are_those_of_runs_of_full_length(folder):
    short = {"methods": ["vespo"], "staleness": [8], "updates": 16, "evaluate": False}
    made = folder(extra_runs=[short])
    assert [run.method for run in made.study.runs()] == ["grpo", "respo", "vespo"]
    assert [run.method for run in made.results.curves()] == ["grpo", "respo"]


def test_metrics_hold_every_update(folder):
    made = folder()
    run = made.run("grpo")
    assert made.results.metrics(run, "score") is None
    made.metrics([0.5] * 32, [0.0] * 32, "grpo")
    assert made.results.metrics(run, "score")["score"].tolist() == [0.5] * 32
    for score, first in [([0.5] * 31, 1), ([0.5] * 32, 0), ([0.5] * 33, 1)]:
        made.metrics(score, score, "grpo", first=first)
        with pytest.raises(UserError, match=r"metrics\.parquet: update: does not count .* 32"):
            made.results.metrics(run, "score")


def test_damaged_metrics_are_named(folder):
    made = folder()
    path = made.metrics([0.5] * 32, [0.0] * 32, "grpo")
    with pytest.raises(UserError) as error:
        made.results.metrics(made.run("grpo"), "entropy")
    remedy = f"train the run anew: snakemake --forcerun {path.parent / 'train.json'}"
    assert str(error.value) == f"{path}: column 'entropy' is missing; {remedy}"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"metrics\.parquet: not a readable Parquet file"):
        made.results.metrics(made.run("grpo"), "score")


@pytest.mark.parametrize("config", ["# changed\n", None])
def test_metrics_of_another_configuration_are_named(folder, config):
    made = folder()
    path = made.metrics([0.5] * 32, [0.0] * 32, "grpo")
    run = path.parent
    if config is None:
        (run / "config.yaml").unlink()
        message = f"{run / 'config.yaml'}: no such file"
    else:
        (run / "config.yaml").write_text(config)
        message = (
            f"{path}: was not made from the configuration that {run / 'config.yaml'} holds now; "
            f"train the run anew: snakemake --forcerun {run / 'train.json'}"
        )
    with pytest.raises(UserError) as error:
        made.results.metrics(made.run("grpo"), "score")
    assert str(error.value) == message


def test_metrics_that_do_not_say_their_configuration(folder):
    made = folder()
    path = made.metrics([0.5] * 32, [0.0] * 32, "grpo")
    write_parquet(path, read_parquet(path), {})
    with pytest.raises(UserError, match=r"metrics\.parquet: was not made from"):
        made.results.metrics(made.run("grpo"), "score")


def flipped(path):
    """Change a bit in a column that nothing reads: one of the text "unread"."""
    data = path.read_bytes()
    assert data.count(b"unread-text") >= 1
    path.write_bytes(data.replace(b"unread-text", b"unread-texu", 1))


def with_unread(path):
    """Add such a column to a Parquet file."""
    table = read_parquet(path)
    column = pa.array(["unread-text"] * table.num_rows)
    write_parquet(path, table.append_column("unread", column), made_from(table))
    return sha256_of(path)


@pytest.mark.parametrize("kind", ["metrics", "branches"])
def test_a_file_of_a_run_that_is_not_the_one_train_json_names(folder, kind):
    made = folder()
    run = made.run("grpo")
    if kind == "metrics":
        path = made.metrics([0.5] * 32, [0.0] * 32, "grpo")
    else:
        path = made.branches({(1, 0): (1, 1.0, 1)}, "grpo")

    def read():
        return getattr(made.results, kind)(run)

    train = path.with_name("train.json")
    for record in ({}, {"outputs": None}, {"outputs": {"other.parquet": "0"}}):
        write_json(train, record)  # as older versions wrote it
        assert read() is not None
    write_json(train, {"outputs": {path.name: with_unread(path)}})
    assert read() is not None
    write_json(train, {"outputs": {path.name: "0" * 64}})
    with pytest.raises(UserError) as error:
        read()
    assert str(error.value) == (
        f"{path}: is not the file that {train} has the hash of: it was changed or damaged; train "
        f"the run anew: snakemake --forcerun {train}"
    )
    write_json(train, {"outputs": {path.name: sha256_of(path)}})
    flipped(path)
    with pytest.raises(UserError, match=rf"{path.name}: (is not the file that|not a readable)"):
        read()
    train.write_text("{")
    with pytest.raises(
        UserError, match=r"(train\.json: not valid JSON|metrics\.parquet: not a rea)"
    ):
        read()


def test_scores_that_are_not_the_ones_the_cell_names(folder):
    made = folder()
    run = made.run("grpo")
    path = made.scores("easy", [("a", True, 3)], "grpo")
    assert made.results.responses(run, "easy") is not None  # no cell yet
    sha256 = with_unread(path)
    cell = made.cell("easy", [2, 1], "grpo")  # of an older version: it holds no hash
    assert made.results.responses(run, "easy") is not None
    made.cell("easy", [2, 1], "grpo", changes={"made_from": {"scores_sha256": sha256}})
    assert made.results.responses(run, "easy") is not None
    flipped(path)
    with pytest.raises(UserError) as error:
        made.results.responses(run, "easy")
    assert str(error.value) == (
        f"{path}: is not the file that {cell} has the hash of: it was changed or damaged; score "
        f"them anew: snakemake --forcerun {path}"
    )


def test_the_digest_follows_what_was_read(folder, tmp_path):
    made = folder()
    path = made.cell("easy", [2, 1], "grpo")

    def digest(place):
        results = Results(place)
        results.cell(made.run("grpo"), "easy")
        return results.digest()

    first = digest(made.path)
    shutil.copytree(made.path, tmp_path / "copy")
    assert digest(tmp_path / "copy") == first
    path.write_text(json.dumps(json.loads(path.read_text())), encoding="utf-8")
    assert digest(made.path) != first


def test_synthetic_is_told_by_each_kind_of_file(folder):
    made = folder()
    run, synthetic = made.run("grpo"), {"synthetic": True}
    cell = made.cell("easy", [2, 1], "grpo", changes={"made_from": synthetic})
    results = made.results
    assert not results.synthetic  # nothing of it is read yet
    assert results.cell(run, "easy").pass_at_1 == 0.75
    assert results.synthetic
    assert results.digest().startswith("synthetic-")
    cell.unlink()
    paths = {
        "metrics": made.metrics([0.5] * 32, [0.0] * 32, "grpo"),
        "branches": made.branches({(1, 0): (1, 1.0, 1)}, "grpo"),
        "scores": made.scores("easy", [("a", True, 3)], "grpo"),
    }
    read = {
        "metrics": lambda results: results.metrics(run, "score"),
        "branches": lambda results: results.branches(run),
        "scores": lambda results: results.responses(run, "easy"),
    }
    for kind, path in paths.items():
        real, made_up = made.results, made.results
        read[kind](real)
        assert not real.synthetic
        assert "-" not in real.digest()
        table = read_parquet(path)
        write_parquet(path, table, made_from(table) | synthetic)
        read[kind](made_up)
        assert made_up.synthetic
