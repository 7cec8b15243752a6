"""Names, parameters, discovery of new objectives, identity of their source."""

import ast
import sys
from pathlib import Path

import pytest
import torch

import respo.objectives as objectives
from respo.objectives import check_parameters, coefficients, parameter_defaults, registry
from respo.objectives.parameters import NonNegative

PACKAGE = Path(objectives.__file__).parent


def test_published_defaults():
    # ReSPO, Tab. 3 and App. A; GSPO, Sec. 5.1; GRPO's usual clip of 0.2 without dual clip.
    assert parameter_defaults("grpo") == {
        "epsilon_low": 0.2,
        "epsilon_high": 0.2,
        "dual_clip": None,
    }
    assert parameter_defaults("gspo") == {"epsilon_low": 3e-4, "epsilon_high": 4e-4}
    assert parameter_defaults("vespo") == {
        "beta_pos": 2.0,
        "lambda_pos": 3.0,
        "beta_neg": 3.0,
        "lambda_neg": 2.0,
    }
    assert parameter_defaults("respo") == {
        "alpha_pos": 2.0,
        "beta_pos": 0.5,
        "lambda_pos": 2.0,
        "alpha_neg": 1.0,
        "beta_neg": 0.5,
        "lambda_neg": 2.0,
    }


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("grpo", {"epsilon_low": -0.1}, r"grpo: epsilon_low = -0.1 .* a number in \[0, 1\]"),
        ("grpo", {"epsilon_low": 1.5}, "epsilon_low = 1.5"),
        ("grpo", {"epsilon_high": -1}, r"epsilon_high = -1 .* a number in \[0, 1e\+06\]"),
        ("grpo", {"epsilon_high": float("nan")}, "epsilon_high = nan"),
        ("grpo", {"epsilon_high": float("inf")}, "epsilon_high = inf"),
        ("grpo", {"epsilon_high": "3e-4"}, "epsilon_high = '3e-4'"),
        ("grpo", {"epsilon_high": True}, "epsilon_high = True"),
        ("grpo", {"epsilon_high": None}, "epsilon_high = None"),
        ("grpo", {"dual_clip": 1.0}, r"dual_clip = 1.0 .* a number in \(1, 1e\+06\], or null"),
        ("gspo", {"epsilon_low": -3e-4}, "gspo: epsilon_low = -0.0003"),
        ("vespo", {"lambda_pos": -1.0}, "vespo: lambda_pos = -1.0"),
        ("vespo", {"beta_neg": "2"}, "vespo: beta_neg = '2'"),
        ("respo", {"beta_pos": 1.5}, r"respo: beta_pos = 1.5 .* a number in \[0, 1\]"),
        ("respo", {"beta_neg": -0.1}, "respo: beta_neg = -0.1"),
        (
            "respo",
            {"alpha_pos": float("nan")},
            r"respo: alpha_pos = nan .* a number in \[-1e\+06, 1e\+06\]",
        ),
        ("grop", {}, "unknown objective: 'grop' .*did you mean 'grpo'.*known: .*grpo, .*gspo"),
        ("ppo-ewma", {}, "unknown objective: 'ppo-ewma'.*known: .*grpo"),
        (
            "grpo",
            {"epsilon_hihg": 0.2},
            "unknown parameter of grpo: 'epsilon_hihg' .*did you mean 'epsilon_high'.*dual_clip",
        ),
        ("gspo", {"dual_clip": 3.0}, "unknown parameter of gspo: 'dual_clip'"),
    ],
)
def test_bad_parameters_are_refused(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        check_parameters(name, parameters)
    with pytest.raises(ValueError, match=message):
        coefficients(name, torch.zeros(1, 1), torch.ones(1), torch.ones(1, 1), **parameters)


def test_check_parameters_completes_with_the_defaults():
    values = check_parameters("grpo", {"epsilon_high": 1})
    assert values == {"epsilon_low": 0.2, "epsilon_high": 1.0, "dual_clip": None}
    assert isinstance(values["epsilon_high"], float)
    assert check_parameters("grpo", {"dual_clip": None})["dual_clip"] is None


@pytest.mark.usefixtures("new_objective")
def test_a_new_objective_is_one_new_file():
    assert "scaled_ratio" in objectives.objective_names()
    assert parameter_defaults("scaled_ratio") == {"scale": 2.0}
    inputs = (torch.zeros(1, 2), torch.ones(1), torch.tensor([[1, 0]]))
    assert coefficients("scaled_ratio", *inputs).tolist() == [[2.0, 0.0]]
    assert coefficients("scaled_ratio", *inputs, scale=3).tolist() == [[3.0, 0.0]]
    with pytest.raises(ValueError, match="scaled_ratio: scale = -1"):
        coefficients("scaled_ratio", *inputs, scale=-1)


def test_functions_of_another_form_are_refused():
    def unknown_tensor(log_ratios_BT):
        return log_ratios_BT

    def untyped_parameter(log_ratio_BT, *, epsilon=0.2):
        return log_ratio_BT

    def no_default(log_ratio_BT, *, epsilon: objectives.parameters.NonNegative):
        return log_ratio_BT

    with pytest.raises(TypeError, match=r"unknown input .*log_ratios_BT.*did you mean 'log_ratio_"):
        registry.objective("unknown_tensor")(unknown_tensor)
    for function in (untyped_parameter, no_default):
        with pytest.raises(TypeError, match="epsilon needs a range as its type and a default"):
            registry.objective("incomplete")(function)
    with pytest.raises(TypeError, match=r"objective 'grpo' is already defined in .*grpo\.py"):
        registry.objective("grpo")(unknown_tensor)


def test_the_package_imports_only_torch_and_the_standard_library():
    allowed = {*sys.stdlib_module_names, "torch"}
    for file in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module]
            else:
                continue
            for name in names:
                ours = name == "respo.objectives" or name.startswith("respo.objectives.")
                assert ours or name.split(".")[0] in allowed, (file.name, name)


def test_an_objective_with_sums_sees_the_whole_mini_batch(monkeypatch):
    def tokens(mask_BT, *, scale: NonNegative = 1.0):
        return scale * mask_BT.sum().double().unsqueeze(0)

    def share(mask_BT, batch_sums, *, scale: NonNegative = 1.0):
        return mask_BT / batch_sums

    monkeypatch.setitem(
        registry._OBJECTIVES, "share", registry._describe("share", share, sums=tokens)
    )
    mask_BT = torch.tensor([[1, 1], [1, 0]], dtype=torch.bool)
    batch = (torch.zeros(2, 2), torch.ones(2), mask_BT)
    assert registry.needs("share") == {"mask_BT", "batch_sums"}
    # 3 valid tokens, by hand.
    assert coefficients("share", *batch)[0, 0].item() == pytest.approx(1 / 3)
    parts = [
        objectives.batch_sums("share", *(tensor[row : row + 1] for tensor in batch))
        for row in range(2)
    ]
    first = coefficients("share", *(tensor[:1] for tensor in batch), batch_sums=sum(parts))
    assert first[0].tolist() == pytest.approx([1 / 3, 1 / 3])
    assert objectives.batch_sums("grpo", *batch) is None


@pytest.mark.parametrize(
    ("function", "sums"),
    [
        (lambda batch_sums: batch_sums, None),  # nobody makes them
        (lambda mask_BT: mask_BT, lambda mask_BT: mask_BT),  # nobody uses them
        (lambda batch_sums: batch_sums, lambda batch_sums: batch_sums),  # made from themselves
    ],
)
def test_sums_and_their_maker_belong_together(function, sums):
    with pytest.raises(TypeError, match="belong together"):
        registry._describe("sums", function, sums)


def test_sums_take_the_parameters_of_their_objective():
    def sums(mask_BT, *, scale: NonNegative = 2.0):
        return mask_BT

    with pytest.raises(TypeError, match="same parameters"):
        registry._describe("sums", lambda batch_sums: batch_sums, sums)


def test_a_default_outside_its_range_is_refused():
    def ratio(log_ratio_BT, *, scale: NonNegative = -1.0):
        return log_ratio_BT

    with pytest.raises(TypeError, match=r"objective ratio: scale = -1.0 must be a number in"):
        registry._describe("ratio", ratio)


@pytest.mark.parametrize("reserved", ["name", "advantage_B", "mask_BT", "loss_mode", "sign"])
def test_parameters_that_are_handed_on_beside_others(reserved):
    source = f"def ratio(log_ratio_BT, *, {reserved}: NonNegative = 1.0): return log_ratio_BT"
    scope = {"NonNegative": NonNegative}
    exec(source, scope)
    with pytest.raises(TypeError, match=f"a parameter cannot be called {reserved}; rename it"):
        registry._describe("ratio", scope["ratio"])


@pytest.mark.parametrize("name", [5, "", "two words", "a/b", "_hidden"])
def test_names_that_are_none(name):
    with pytest.raises(TypeError, match="a name is letters, digits"):
        registry.objective(name)(lambda log_ratio_BT: log_ratio_BT)


def test_a_forgotten_star_is_told():
    def ratio(log_ratio_BT, power: NonNegative = 1.0):
        return log_ratio_BT

    with pytest.raises(
        TypeError, match=r"objective ratio: power is a parameter; write a \* before"
    ):
        registry._describe("ratio", ratio)
