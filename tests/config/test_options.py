"""The options of a run: who sets them, who goes first, and what is refused."""

import pytest
import yaml

from respo.cli import UserError
from respo.config import Run, load_run_config, load_study
from respo.config.yaml import canonical

DENSE, MIXTURE = "qwen3-tiny", "qwen3-tiny-moe"


@pytest.fixture
def study(config):
    return config / "studies" / "tiny.yaml"


def edit(path, **changes):
    values = yaml.safe_load(path.read_text())
    values.update(changes)
    path.write_text(yaml.safe_dump(values))


def training(config, method="grpo", model=DENSE):
    resolved = load_study(config, "tiny")
    return resolved.run_config(Run(model, method, 8, 1), "").training


def message(config):
    with pytest.raises(UserError) as error:
        load_study(config, "tiny")
    return str(error.value)


def test_everything_is_off_unless_asked_for(config):
    options = training(config)
    assert options.kl_coefficient == options.entropy_coefficient == 0
    assert options.dynamic_sampling == options.overlong_buffer == 0
    assert options.overlong_factor == 1
    assert options.routing_replay == "none"


@pytest.mark.parametrize(
    ("option", "of_study", "of_method"),
    [
        ("loss_aggregation", "token-mean", "seq-mean-token-sum"),
        ("kl_coefficient", 0.001, 0.0),  # 0 switches off what the study switches on
        ("entropy_coefficient", 0.0, 0.001),
        ("dynamic_sampling", 3, 0),
        ("overlong_buffer", 16, 8),
        ("routing_replay", "R2", "R3"),
    ],
)
def test_a_method_goes_before_the_study(config, study, option, of_study, of_method):
    edit(study, models=[MIXTURE], **{option: of_study})
    edit(config / "methods" / "gspo.yaml", **{option: of_method})
    assert getattr(training(config, "gspo", MIXTURE), option) == of_method
    assert getattr(training(config, "grpo", MIXTURE), option) == of_study


def test_the_length_penalty_is_the_methods_else_the_models_else_the_studys(config, study):
    edit(study, models=[DENSE, MIXTURE], overlong_buffer=4, overlong_factor=2.0)
    edit(config / "models" / f"{MIXTURE}.yaml", overlong_buffer=8)
    edit(config / "methods" / "gspo.yaml", overlong_buffer=16, overlong_factor=0.5)
    found = {
        (method, model): (options.overlong_buffer, options.overlong_factor)
        for method in ("grpo", "gspo")
        for model in (DENSE, MIXTURE)
        for options in [training(config, method, model)]
    }
    assert found == {
        ("grpo", DENSE): (4, 2.0),
        ("grpo", MIXTURE): (8, 2.0),
        ("gspo", DENSE): (16, 0.5),
        ("gspo", MIXTURE): (16, 0.5),
    }


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("kl_coefficient", -0.1),
        ("kl_coefficient", float("inf")),
        ("entropy_coefficient", -1.0),
        ("entropy_coefficient", "1e-3"),
        ("dynamic_sampling", -1),
        ("dynamic_sampling", True),
        ("overlong_buffer", -1),
        ("overlong_buffer", 1.5),
        ("overlong_factor", 0.0),
        ("overlong_factor", float("nan")),
        ("routing_replay", "R1"),
        ("routing_replay", False),
    ],
)
@pytest.mark.parametrize("file", ["studies/tiny.yaml", "methods/grpo.yaml"])
def test_a_bad_value_names_file_and_key(config, file, option, value):
    edit(config / file, **{option: value})
    assert f"{config / file}: {option}: " in message(config)


def test_only_the_length_penalty_is_an_option_of_a_model(config):
    path = config / "models" / f"{DENSE}.yaml"
    edit(path, kl_coefficient=0.1)
    assert f"{path}: kl_coefficient: unknown key" in message(config)


@pytest.mark.parametrize("file", ["studies/tiny.yaml", "methods/vespo.yaml"])
def test_routing_replay_needs_experts(config, file):
    edit(config / file, routing_replay="R3")
    assert message(config) == (
        f"{config / file}: routing_replay: 'R3' needs a mixture of experts, and model_type is "
        f"'qwen3'; write none or train another model (model 'qwen3-tiny')"
    )


@pytest.mark.parametrize(
    "file", ["studies/tiny.yaml", "methods/vespo.yaml", "models/qwen3-tiny.yaml"]
)
def test_a_penalty_longer_than_the_response_is_refused(config, file):
    edit(config / file, overlong_buffer=64)
    load_study(config, "tiny")
    edit(config / file, overlong_buffer=65)
    expected = "overlong_buffer: 65 is greater than max_response_tokens 64"
    assert f"{config / file}: {expected}" in message(config)


@pytest.mark.parametrize(
    "file", ["studies/tiny.yaml", "methods/vespo.yaml", "models/qwen3-tiny.yaml"]
)
def test_a_factor_without_a_penalty_is_refused(config, study, file):
    edit(config / file, overlong_factor=2.0)
    assert f"{config / file}: overlong_factor: does nothing" in message(config)
    # With a penalty in any of its runs it does something.
    edit(study, overlong_buffer=8)
    load_study(config, "tiny")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("routing_replay", "R2", "training.routing_replay: 'R2' needs a mixture of experts"),
        ("overlong_buffer", 65, "training.overlong_buffer: 65 is greater than max_response_tokens"),
    ],
)
def test_a_run_folder_is_held_to_the_same(config, tmp_path, option, value, expected):
    run = load_study(config, "tiny").run_config(Run(DENSE, "grpo", 8, 1), "")
    values = run.model_dump(mode="json")
    path = tmp_path / "config.yaml"
    path.write_text(canonical(values))
    assert load_run_config(path) == run
    values["training"][option] = value
    path.write_text(canonical(values))
    with pytest.raises(UserError) as error:
        load_run_config(path)
    assert f"{path}: {expected}" in str(error.value)
