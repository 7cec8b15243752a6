"""`respo/table2` and `3`: settings, as the configuration has them."""

import csv
import io
from pathlib import Path

import pytest

from respo.cli import UserError
from respo.config import load_study
from respo.reporting import registry, table, tables
from respo.reporting.tables.respo_table2 import ROWS, Setting, _values

CONFIG = Path(__file__).parents[3] / "config"
SHORT = {"methods": ["vespo"], "staleness": [16], "updates": 16, "evaluate": False}


def rows(files, key):
    found = csv.DictReader(io.StringIO(files["csv"]))
    return {row.pop(key): row for row in found}


def test_settings_of_a_model(folder):
    made = folder(staleness=[8, 16], seeds=[1, 2], extra_runs=[SHORT])
    found = rows(table.make("respo/table2", made.results), "setting")
    values = {name: row["small"] for name, row in found.items()}
    assert values["Updates per rollout batch N"] == "8; 16"
    assert values["Rollout batch N × M, prompts"] == "32; 64"
    assert values["Policy updates"] == "32; 16"
    assert values["Prompts trained on"] == "128; 64"
    assert values["Seeds"] == "1; 2"
    assert values["Learning rate of AdamW, constant"] == "0.0001"
    assert values["Betas"] == "0.9 and 0.999"
    assert values["KL coefficient"] == values["Dynamic sampling, rounds"] == "none"
    assert values["Initial weights"] == "made here, 1 supervised steps"
    assert (values["Trainer"], values["Training data"], values["Reward"]) == (
        "local", "chain", "strict box",
    )  # fmt: skip
    assert values["Responses per problem K"] == "2"
    assert values["Evaluation top-p"] == "0.7"


def test_settings_of_the_paper(paper):
    """ReSPO, Table 2: both models, and the diagnostic runs."""
    files = table.make("respo/table2", paper("respo").results)
    found = rows(files, "setting")
    dense, mixture, long = "qwen3-1.7b-base", "qwen3-30b-a3b-base", "qwen3-1.7b-base-16k"
    limit = found["Response limit, tokens"]
    assert (limit[dense], limit[mixture], limit[long]) == ("15,360", "8,192", "16,384")
    penalty = found["Length penalty, last tokens before the limit"]
    assert (penalty[dense], penalty[mixture]) == ("none", "4,096 tokens, factor 1")
    # The one run with routing replay is a method's own.
    assert found["Routing replay"][mixture] == "none"
    assert found["Policy updates"][long] == "512"
    assert found["Rollout batch N × M, prompts"][dense] == "256; 512; 1,024"
    assert found["Responses per problem K"][dense] == (
        "16: AIME25, AIME24, AMC23; 4: OlympiadBench, MinervaMath, MATH-500"
    )
    assert found["Evaluation top-p"][long] == ""  # not evaluated
    assert "the first rollout batch leaves the weights as they are" in files["md"]


def test_no_warm_up_needs_no_explanation(folder):
    assert "warm-up leaves" not in table.make("respo/table2", folder().results)["md"]


def test_an_option_that_every_method_sets_itself():
    study = load_study(CONFIG, "respo")
    option, show = ROWS["Routing replay"]
    run = next(run for run in study.runs() if run.method == "respo-r3")
    assert _values(option, show, [Setting(study, run, study.training(run))]) == "by method"


def test_settings_of_methods(paper):
    files = table.make("respo/table3", paper("respo").results)
    found = rows(files, "method")
    # ReSPO, Table 3.
    assert found["vespo"]["parameters"] == "beta_pos 2, lambda_pos 3, beta_neg 3, lambda_neg 2"
    assert found["gspo"]["parameters"] == "epsilon_low 0.0003, epsilon_high 0.0004"
    assert found["grpo"]["parameters"] == "epsilon_low 0.2, epsilon_high 0.2, dual_clip none"
    assert (found["respo"]["options"], found["respo-r3"]["options"]) == ("", "routing_replay R3")
    assert "GSPO departs from its source: 1. " in files["md"]
    assert "ReSPO departs" not in files["md"]


@pytest.mark.parametrize("id_", ["respo/table2", "respo/table3"])
def test_settings_need_no_results(folder, id_):
    made = folder()
    assert registry.module(tables, id_).inputs(made.study) == []
    assert "| -- " not in table.make(id_, made.results)["md"]


def test_a_study_of_baselines_alone_has_no_training(monkeypatch, folder):
    made = folder()
    monkeypatch.setattr(type(made.study), "runs", lambda self: [])
    with pytest.raises(UserError, match="respo/table2 shows settings of training, and the study"):
        table.make("respo/table2", made.results)
