"""Every method of the project: it loads, tells all of itself, and is another one than the rest."""

import re
from pathlib import Path

import pytest
import yaml

from respo import objectives
from respo.config.load import load_methods

CONFIG = Path(__file__).parents[2] / "config"
FILES = {path.stem: path for path in sorted(CONFIG.glob("methods/*.yaml"))}
SETTINGS = {
    "objective",
    "parameters",
    "loss_aggregation",
    "kl_coefficient",
    "entropy_coefficient",
    "dynamic_sampling",
    "overlong_buffer",
    "overlong_factor",
    "routing_replay",
}


def load(*names):
    return load_methods(CONFIG, dict.fromkeys(names, "here"))


METHODS = load(*FILES)


def settings(name):
    """All that a training of the method depends on."""
    return METHODS[name].model_dump(include=SETTINGS)


@pytest.mark.parametrize("name", FILES)
def test_every_parameter_is_spelled_out(name):
    written = yaml.safe_load(FILES[name].read_text())
    defaults = objectives.parameter_defaults(METHODS[name].objective)
    assert list(written["parameters"]) == list(defaults)


@pytest.mark.parametrize("name", FILES)
def test_deviations_are_numbered_sentences(name):
    for number, deviation in enumerate(METHODS[name].deviations, start=1):
        assert re.fullmatch(rf"{number}\. .*\.", deviation)
        assert "\n" not in deviation


@pytest.mark.parametrize("name", FILES)
def test_a_source_names_a_place_or_a_year(name):
    assert re.search(r"Section|Appendix|Table|\(20\d\d\w?\)|arXiv", METHODS[name].source)


def test_labels_are_short_and_distinct():
    labels = [method.label for method in METHODS.values()]
    assert len(set(labels)) == len(labels)
    assert max(map(len, labels)) <= 20


def test_no_two_methods_are_the_same():
    for name in FILES:
        assert [other for other in FILES if settings(other) == settings(name)] == [name]


def test_every_objective_has_a_method():
    assert {method.objective for method in METHODS.values()} == set(objectives.objective_names())


# What a parameter's default is, by the method that has the objective's name.
@pytest.mark.parametrize(
    "name", [name for name in FILES if name.replace("-", "_") in objectives.objective_names()]
)
def test_the_method_of_an_objective_has_its_defaults(name):
    defaults = objectives.parameter_defaults(name.replace("-", "_"))
    assert METHODS[name].parameters == defaults


# (alpha, beta) of MASPO's Table 5, with beta_low = beta_high and sigma_base = 1 (Section 5.3).
TABLE_5 = {
    (0.1, 0.03): "maspo-a0.1-b0.03",
    (0.3, 0.0): "maspo-a0.3-b0",
    (0.3, 0.03): "maspo",
    (0.3, 0.1): "maspo-a0.3-b0.1",
    (0.5, 0.0): "maspo-a0.5-b0",
    (0.5, 0.03): "maspo-a0.5-b0.03",
    (0.5, 0.1): "maspo-a0.5-b0.1",
    (0.8, 0.03): "maspo-a0.8-b0.03",
}


@pytest.mark.parametrize(("setting", "name"), TABLE_5.items())
def test_the_sweep_of_maspo(setting, name):
    alpha, beta = setting
    expected = {"sigma_base": 1.0, "alpha": alpha, "beta_low": beta, "beta_high": beta}
    assert METHODS[name].parameters == expected


# Published values: DAPO, Sec. 3.1; MASPO, App. D.1 and D.4; ASPO, Fig. 8; CE-GPPO at 1.5B and 7B.
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("grpo", {"dual_clip": None}),
        ("grpo-dual-clip", {"dual_clip": 3.0}),
        ("clip-higher", {"epsilon_low": 0.2, "epsilon_high": 0.28}),
        ("clip-higher-maspo", {"epsilon_low": 0.2, "epsilon_high": 0.265}),
        ("maspo-no-positive-risk", {"alpha": 0.5, "beta_low": 0.03, "beta_high": 0.0}),
        ("aspo-no-dual-clip", {"dual_clip": None}),
        ("ce-gppo", {"beta_low": 0.5, "beta_high": 1.0}),
        ("ce-gppo-7b", {"beta_low": 0.75, "beta_high": 1.0}),
        ("adv-reweight-0.3", {"alpha": 0.3}),
    ],
)
def test_published_variants(name, values):
    assert values.items() <= METHODS[name].parameters.items()


def test_options_of_methods():
    assert METHODS["entropy-reg"].entropy_coefficient == 0.001
    assert METHODS["entropy-reg"].parameters == METHODS["grpo"].parameters
    for replay in ("R2", "R3"):
        method = METHODS[f"respo-{replay.lower()}"]
        assert method.routing_replay == replay
        assert method.parameters == METHODS["respo"].parameters
    # SAPO's authors average within each response first.
    assert METHODS["sapo"].loss_aggregation == "seq-mean-token-mean"
