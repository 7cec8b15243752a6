"""Questions with options and problems to be programmed: which keys there are and which fit."""

from pathlib import Path

import pytest
import yaml

from respo.cli import UserError
from respo.config import load_data_config, load_study
from respo.config.schema import Benchmark, Dataset
from respo.config.validate import validate
from respo.config.yaml import read_yaml

CONFIG = Path(__file__).parents[2] / "config"
COLUMN = {"label": "L", "version": 1, "samples": 1}
ROWS = {"source": "rows", "path": "r.jsonl", "fields": {"prompt": "q", "answer": "a"}}
FIELDS = {"prompt": "q", "options": ["o"], "answer": "a"}
CHOICES = {"source": "choices", "path": "q.jsonl", "fields": FIELDS}
PROGRAMS = {"source": "programs", "path": "p.jsonl", "form": "livecodebench"}
FIRST = {"answer": "first", "fields": {"prompt": "q", "options": ["x", "y"]}}


def message(kind, values):
    with pytest.raises(UserError) as error:
        validate(kind, values, "b.yaml")
    return str(error.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (CHOICES | {"fields": {**FIELDS, "options": []}}, "fields.options: [] is not allowed"),
        (CHOICES | {"fields": {**FIELDS, "options": "o"}}, "fields.options: 'o' is not allowed"),
        (CHOICES | {"fields": {**FIELDS, "options": ["o", "o"]}}, "fields.options: 'o' stands twi"),
        (CHOICES | {"fields": {"prompt": "q", "options": ["o"]}}, "fields.answer: names the field"),
        (CHOICES | {"answer": "first", "shuffle": 0}, "fields.answer: names the field"),
        (CHOICES | FIRST, "shuffle: is missing; with answer first A would always be right"),
        (
            CHOICES | FIRST | {"fields": {**FIRST["fields"], "labels": "l"}, "shuffle": 0},
            "fields.labels: do nothing with answer first",
        ),
        (CHOICES | {"template": "{prompt}"}, "template: write {options} once"),
        (CHOICES | {"template": "{options}"}, "template: write {prompt} once"),
        (PROGRAMS | {"form": "apps"}, "form: 'apps' is not allowed"),
        (PROGRAMS | {"template": "Solve."}, "template: write {prompt} once"),
        (
            PROGRAMS | {"starter_template": "{prompt}"},
            "starter_template: write {starter_code} once",
        ),
        (PROGRAMS | {"start_date": "2024-8-1"}, "start_date: '2024-8-1' is not a day; write it as"),
        (PROGRAMS | {"start_date": "2024-02-30"}, "start_date: '2024-02-30' is not a day"),
        (PROGRAMS | {"start_date": "20240801"}, "start_date: '20240801' is not a day"),
        (PROGRAMS | {"start_date": "2024-W31-4"}, "start_date: '2024-W31-4' is not a day"),
        (PROGRAMS | {"start_date": 20240801}, "start_date: 20240801 is not allowed"),
        (
            PROGRAMS | {"start_date": "2024-08-02", "end_date": "2024-08-01"},
            "end_date: 2024-08-01 is before start_date 2024-08-02",
        ),
        (
            PROGRAMS | {"form": "deepcoder", "end_date": "2024-08-01"},
            "start_date, end_date: need form livecodebench; remove them",
        ),
        (PROGRAMS | {"path": None}, "hub, path: write one of them"),
        ({**PROGRAMS, "source": "program"}, "source: 'program' is not allowed: input should be"),
    ],
)
def test_bad_keys_are_named(values, expected):
    assert message(Dataset, values).startswith(f"b.yaml: {expected}")


@pytest.mark.parametrize(
    ("values", "verifiers"),
    [
        (ROWS, {"strict_box", "math_verify"}),
        (CHOICES, {"choice"}),
        (PROGRAMS, {"code"}),
    ],
)
def test_a_verifier_fits_its_source(values, verifiers):
    for verifier in ("strict_box", "math_verify", "choice", "code"):
        column = values | COLUMN | {"verifier": verifier}
        if verifier in verifiers:
            assert validate(Benchmark, column, "b.yaml").verifier == verifier
        else:
            expected = f"b.yaml: verifier: {verifier!r} does not fit this source; write "
            assert message(Benchmark, column).startswith(expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"version": None}, "version: None is not allowed"),
        ({"version": 0}, "version: 0 is not allowed"),
        ({"temperature": 0.0}, "temperature: 0.0 is not allowed"),
        ({"top_p": 1.5}, "top_p: 1.5 is not allowed"),
        ({"max_response_tokens": 0}, "max_response_tokens: 0 is not allowed"),
        ({"verifier": "judge"}, "verifier: 'judge' is not allowed"),
    ],
)
def test_bad_columns_are_named(change, expected):
    values = ROWS | COLUMN | {"verifier": "strict_box"} | change
    assert message(Benchmark, values).startswith(f"b.yaml: {expected}")


def test_a_day_may_be_written_as_yaml_knows_it(tmp_path):
    path = tmp_path / "b.yaml"
    path.write_text("source: programs\npath: p\nform: livecodebench\nstart_date: 2024-08-01\n")
    assert validate(Dataset, read_yaml(path), path).start_date == "2024-08-01"


def test_the_configuration_of_the_rows_is_read_back(tmp_path):
    for name in ("aspo", "aspo-code"):
        resolved = load_study(CONFIG, name)
        texts = resolved.config_texts(tmp_path, lambda _: "")
        for side, known in (("train", resolved.datasets), ("held_out", resolved.benchmarks)):
            for data_name, data in known.items():
                path = tmp_path / "c.yaml"
                path.write_text(texts[f"{tmp_path}/data/{side}/{data_name}.yaml"]())
                found, version = load_data_config(path)
                assert version == (None if side == "train" else data.version)
                assert found.model_dump().items() <= data.model_dump().items()


@pytest.mark.parametrize(
    ("data", "reward", "known"),
    [
        (ROWS, "code", "strict_box or math_verify"),
        (CHOICES, "math_verify", "choice"),
        (PROGRAMS, "strict_box", "code"),
        (PROGRAMS, "choice", "code"),
    ],
)
def test_a_reward_fits_the_training_set(config, data, reward, known):
    (config / "datasets" / "mine.yaml").write_text(yaml.safe_dump(data))
    path = config / "studies" / "tiny.yaml"
    changes = {"train_data": "mine", "reward": reward}
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))
    with pytest.raises(UserError) as error:
        load_study(config, "tiny")
    assert str(error.value) == (
        f"{path}: reward: {reward!r} does not fit the training set 'mine' of source "
        f"{data['source']}; write {known}, or another train_data"
    )


@pytest.mark.parametrize(
    "path", sorted(CONFIG.glob("benchmarks/*.yaml")), ids=lambda path: path.stem
)
def test_published_benchmarks_name_a_commit_and_their_rows(path):
    benchmark = validate(Benchmark, read_yaml(path), path)
    if benchmark.source != "chain":
        assert len(benchmark.revision) == 40
        assert benchmark.rows
