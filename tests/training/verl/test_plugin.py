"""The plugin in verl 0.9.1: registry, configuration, and verl's `ppo_loss` with every objective."""

import importlib.util
import pickle
import warnings
from types import SimpleNamespace

import pytest
import torch

from respo import objectives

if importlib.util.find_spec("verl") is None:
    pytest.skip("verl is not installed", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from hydra import compose, initialize_config_module
    from hydra.errors import InstantiationException
    from verl.trainer.ppo.core_algos import POLICY_LOSS_REGISTRY, get_policy_loss_fn
    from verl.utils import tensordict_utils as tu
    from verl.utils.config import omega_conf_to_dataclass, validate_config
    from verl.utils.metric import AggregationType
    from verl.workers.config import FSDPActorConfig, PolicyLossConfig
    from verl.workers.engine.base import BaseEngine
    from verl.workers.utils.losses import ppo_loss

    from respo.training.verl import engine, plugin, settings
    from respo.training.verl.mini_batch import micro_batch

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

PROMPT, WIDTH, ROWS = 2, 6, 12
KL, ENTROPY = 0.1, 0.05
ACTOR = "actor_rollout_ref.actor"


def config_class(name):
    return getattr(plugin, settings.class_name(name))


def actor(name, **options):
    changes = {"policy_loss": config_class(name)(), "loss_scale_factor": WIDTH} | options
    return FSDPActorConfig(strategy="fsdp2", rollout_n=4, ppo_micro_batch_size_per_gpu=1, **changes)


def make_batch(dtype=torch.float64):
    """Responses of 1 to 6 tokens with both signs and 0 of the advantage."""
    generator = torch.Generator().manual_seed(1)

    def normal():
        return torch.randn(ROWS, WIDTH, generator=generator, dtype=torch.float64).to(dtype)

    length_B = torch.randint(1, WIDTH + 1, (ROWS,), generator=generator)
    old_BT = -normal().abs() - 0.05
    advantage_B = torch.randn(ROWS, generator=generator, dtype=torch.float64).to(dtype)
    advantage_B[5] = 0.0
    return SimpleNamespace(
        length_B=length_B,
        mask_BT=torch.arange(WIDTH) < length_B.unsqueeze(1),
        old_BT=old_BT,
        log_prob_BT=(old_BT + 0.4 * normal()).clamp(max=0),
        reference_BT=old_BT + 0.4 * normal(),
        entropy_BT=normal().abs(),
        advantage_B=advantage_B,
        is_weight_BT=normal().exp(),
    )


def packed(value_BT, length_B):
    """The responses' values in nested sequences with their prompts, as model outputs have them."""
    rows = []
    for value_T, length in zip(value_BT, length_B, strict=True):
        # Outputs are about next tokens: a response's start one place before it, and end with junk.
        junk = value_T.new_full((PROMPT - 1,), 7.0)
        rows.append(torch.cat((junk, value_T[:length], value_T.new_full((1,), 7.0))))
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def verl_gradient(batch, name, with_is_weights=False, with_entropy=False, **options):
    """Gradient of verl's ppo_loss with respect to log pi and to the entropy, and its metrics."""
    length_B = batch.length_B

    def nested(value_BT):
        rows = [row[:length] for row, length in zip(value_BT, length_B, strict=True)]
        return torch.nested.as_nested_tensor(rows, layout=torch.jagged)

    ids_BT = torch.ones(ROWS, WIDTH, dtype=torch.long)
    tensors = {
        "prompts": torch.nested.as_nested_tensor(
            list(ids_BT[:, :PROMPT].unbind()), layout=torch.jagged
        ),
        "responses": nested(ids_BT),
        "response_mask": nested(ids_BT),
        "old_log_probs": nested(batch.old_BT),
        "ref_log_prob": nested(batch.reference_BT),
        "advantages": nested(batch.advantage_B.unsqueeze(1).expand(ROWS, WIDTH)),
    }
    if with_is_weights:
        tensors["rollout_is_weights"] = nested(batch.is_weight_BT)
    data = tu.get_tensordict(
        tensors,
        non_tensor_dict={
            "dp_size": 1,
            "batch_num_tokens": int(batch.mask_BT.sum()),
            "global_batch_size": ROWS,
        },
    )
    log_prob_BT = batch.log_prob_BT.clone().requires_grad_()
    entropy_BT = batch.entropy_BT.clone().requires_grad_()
    output = {"log_probs": packed(log_prob_BT, length_B)}
    if with_entropy:
        output["entropy"] = packed(entropy_BT, length_B)
    loss_function = bound_loss(name, options)
    sums = objectives.batch_sums(
        name,
        batch.log_prob_BT - batch.old_BT,
        batch.advantage_B,
        batch.mask_BT,
        batch.old_BT,
        entropy_BT=batch.entropy_BT,
    )
    loss, metrics = engine.informed(loss_function, sums, None, model_output=output, data=data)
    loss.backward()
    return log_prob_BT.grad, entropy_BT.grad, metrics


def bound_loss(name, options):
    def loss_function(model_output, data):
        return ppo_loss(actor(name, **options), model_output, data)

    return loss_function


def local_gradient(batch, name, aggregation="token-mean", is_weight_BT=1.0, kl=0.0, entropy=0.0):
    log_prob_BT = batch.log_prob_BT.clone().requires_grad_()
    entropy_BT = batch.entropy_BT.clone().requires_grad_()
    coefficient_BT = objectives.coefficients(
        name,
        (log_prob_BT - batch.old_BT).detach(),
        batch.advantage_B,
        batch.mask_BT,
        batch.old_BT,
        entropy_BT=entropy_BT.detach(),
    )
    weight_B = objectives.token_weights(
        aggregation,
        batch.mask_BT,
        batch_tokens=int(batch.mask_BT.sum()),
        batch_responses=ROWS,
        max_response_tokens=WIDTH,
    )
    loss = objectives.policy_loss(
        log_prob_BT, coefficient_BT * is_weight_BT, batch.advantage_B, batch.mask_BT, weight_B
    )
    loss = loss + kl * objectives.kl_loss(log_prob_BT, batch.reference_BT, batch.mask_BT, weight_B)
    loss = loss - entropy * objectives.entropy_bonus(entropy_BT, batch.mask_BT, weight_B)
    loss.backward()
    return log_prob_BT.grad, entropy_BT.grad


def needs_entropy(name):
    return "entropy_BT" in objectives.needs(name)


@pytest.mark.parametrize("aggregation", objectives.AGGREGATIONS)
@pytest.mark.parametrize("name", objectives.objective_names())
def test_ppo_loss_has_the_local_gradient(name, aggregation):
    batch = make_batch()
    actual, _, _ = verl_gradient(
        batch, name, with_entropy=needs_entropy(name), loss_agg_mode=aggregation
    )
    expected, _ = local_gradient(batch, name, aggregation)
    # verl adds 1e-8 to the number of tokens in seq-mean-token-mean.
    rtol = 1e-7 if aggregation == "seq-mean-token-mean" else 1e-12
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=1e-15)


@pytest.mark.parametrize("name", objectives.objective_names())
def test_rollout_importance_weights_multiply_the_loss(name):
    batch = make_batch()
    actual, _, _ = verl_gradient(
        batch, name, with_is_weights=True, with_entropy=needs_entropy(name)
    )
    expected, _ = local_gradient(batch, name, is_weight_BT=batch.is_weight_BT)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("aggregation", objectives.AGGREGATIONS)
def test_kl_and_entropy_terms_are_ours(aggregation):
    batch = make_batch()
    options = {"use_kl_loss": True, "kl_loss_coef": KL, "entropy_coeff": ENTROPY}
    actual = verl_gradient(batch, "respo", with_entropy=True, loss_agg_mode=aggregation, **options)[
        :2
    ]
    expected = local_gradient(batch, "respo", aggregation, kl=KL, entropy=ENTROPY)
    torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-15)


def test_bfloat16_is_lifted_to_float32():
    batch = make_batch(torch.bfloat16)
    actual, _, _ = verl_gradient(batch, "gspo")
    lifted = SimpleNamespace(
        **{
            key: value.float() if value.is_floating_point() else value
            for key, value in vars(batch).items()
        }
    )
    expected, _ = local_gradient(lifted, "gspo")
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual.float(), expected, rtol=8e-3, atol=1e-8)


def call(name, batch, **options):
    """Our policy loss directly on padded tensors, all of them a leaf's or constants."""
    log_prob_BT = batch.log_prob_BT.clone().requires_grad_()
    with micro_batch(batch.entropy_BT, None) as part:
        loss, metrics = get_policy_loss_fn(settings.loss_mode(name))(
            old_log_prob=batch.old_BT,
            log_prob=log_prob_BT,
            advantages=batch.advantage_BT,
            response_mask=batch.mask_BT,
            config=actor(name),
            **options,
        )
    loss.backward()
    return log_prob_BT.grad, loss, metrics, part.sums


@pytest.mark.parametrize("junk", [float("nan"), float("inf"), 100.0])
def test_masked_junk_does_not_matter(junk):
    batch = make_batch()
    batch.advantage_BT = batch.advantage_B.unsqueeze(1).repeat(1, WIDTH)
    batch.mask_BT[4] = False  # a response without valid tokens
    clean = call("entropy_adv", batch, rollout_is_weights=batch.is_weight_BT)
    for name in ("old_BT", "log_prob_BT", "entropy_BT", "advantage_BT", "is_weight_BT"):
        setattr(batch, name, getattr(batch, name).masked_fill(~batch.mask_BT, junk))
    soiled = call("entropy_adv", batch, rollout_is_weights=batch.is_weight_BT)
    torch.testing.assert_close(soiled, clean, rtol=0, atol=0)


def test_the_advantage_is_that_of_the_valid_tokens():
    batch = make_batch()
    batch.mask_BT[:, 0] = False
    everywhere_BT = batch.advantage_B.unsqueeze(1).expand(ROWS, WIDTH)
    batch.advantage_BT = torch.where(batch.mask_BT, everywhere_BT, 9.0)
    gradient = call("grpo_no_is", batch)[0]
    tokens = batch.mask_BT.sum()
    expected = -batch.advantage_B.unsqueeze(1) * batch.mask_BT / tokens
    torch.testing.assert_close(gradient, expected)


def test_advantages_of_tokens_are_refused():
    batch = make_batch()
    batch.advantage_BT = torch.randn(ROWS, WIDTH, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"one advantage per response, .*adv_estimator=grpo"):
        call("grpo_no_is", batch)


def test_sums_come_out_as_sums():
    _, _, metrics = verl_gradient(make_batch(), "grpo")
    ours = {key: value for key, value in metrics.items() if key.startswith("respo/")}
    assert len(ours) == 2 + 2 * 5 + 1 + 2 * 3 * 10
    assert all(value.aggregation is AggregationType.SUM for value in ours.values())
    # What verl does to the names of metrics that are not of this type depends on these words.
    assert not [key for key in ours if "max" in key or "min" in key]


def test_the_metric_of_verl_is_its_own():
    batch = make_batch()
    _, _, metrics = verl_gradient(batch, "grpo")
    expected = (batch.old_BT - batch.log_prob_BT)[batch.mask_BT].mean()
    assert metrics["actor/ppo_kl"].aggregate() == pytest.approx(expected.item())


def test_every_objective_is_registered_with_a_class():
    for name in objectives.objective_names():
        assert f"respo_{name}" in POLICY_LOSS_REGISTRY
        assert config_class(name)().parameters == objectives.parameter_defaults(name)


def test_registering_twice_is_harmless():
    before = dict(POLICY_LOSS_REGISTRY)
    train_batch = BaseEngine.train_batch
    importlib.reload(plugin)
    plugin.GrpoConfig()
    assert set(POLICY_LOSS_REGISTRY) == set(before)
    assert BaseEngine.train_batch is train_batch


def compose_with(*overrides):
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose(
            "ppo_trainer",
            overrides=[
                f"{ACTOR}.ppo_micro_batch_size_per_gpu=1",
                "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1",
                "data.train_batch_size=256",
                *overrides,
            ],
        )


SELECT_ASPO = (
    f"{ACTOR}.policy_loss.loss_mode=respo_aspo",
    f"{ACTOR}.policy_loss._target_=respo.training.verl.plugin.AspoConfig",
)


def test_options_of_the_command_line_reach_the_loss():
    config = compose_with(
        *SELECT_ASPO,
        f"+{ACTOR}.policy_loss.epsilon_low=0.1",
        f"+{ACTOR}.policy_loss.dual_clip=null",
    )
    validate_config(config, use_reference_policy=False, use_critic=False)
    made = omega_conf_to_dataclass(config.actor_rollout_ref.actor).policy_loss
    assert isinstance(made, plugin.AspoConfig)
    assert made.parameters == {"epsilon_low": 0.1, "epsilon_high": 0.2, "dual_clip": None}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("epsilon_lo=0.1", "unknown parameter of aspo: 'epsilon_lo' (did you mean 'epsilon_low'?)"),
        ("epsilon_low=1.5", "aspo: epsilon_low = 1.5 is not allowed"),
        ("epsilon_low=low", "aspo: epsilon_low = 'low' is not allowed"),
        ("epsilon_low=null", "aspo: epsilon_low = None is not allowed"),
    ],
)
def test_bad_parameters_are_refused(override, message):
    config = compose_with(*SELECT_ASPO, f"+{ACTOR}.policy_loss.{override}")
    with pytest.raises(InstantiationException) as error:
        validate_config(config, use_reference_policy=False, use_critic=False)
    assert message in str(error.value)


def test_class_and_loss_mode_must_agree():
    with pytest.raises(ValueError, match="AspoConfig needs loss_mode=respo_aspo, not 'vanilla'"):
        plugin.AspoConfig(loss_mode="vanilla")
    batch = make_batch()
    for wrong in (PolicyLossConfig(loss_mode="respo_grpo"), plugin.GspoConfig()):
        with pytest.raises(ValueError, match=r"needs .*_target_=respo.*plugin\.GrpoConfig"):
            get_policy_loss_fn("respo_grpo")(
                batch.old_BT,
                batch.log_prob_BT,
                batch.old_BT,
                batch.mask_BT,
                config=actor("grpo", policy_loss=wrong),
            )


def test_configurations_survive_pickle():
    config = plugin.GrpoNoIsConfig(), plugin.BapoConfig(target=0.3)
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    ("name", "message"),
    [("entropy_adv", "calculate_entropy=True"), ("bapo", "sums over the whole mini-batch")],
)
def test_what_the_loss_is_not_told_is_an_error(name, message):
    batch = make_batch()
    with pytest.raises(ValueError, match=message):
        get_policy_loss_fn(settings.loss_mode(name))(
            batch.old_BT, batch.log_prob_BT, batch.old_BT, batch.mask_BT, config=actor(name)
        )


def test_dynamic_context_parallel_is_refused_where_the_mini_batch_is_needed():
    fake = SimpleNamespace(engine_config=SimpleNamespace(dynamic_context_parallel=True))
    with pytest.raises(ValueError, match="dynamic_context_parallel does not allow: switch it off"):
        engine.collect_sums(fake, None, plugin.BapoConfig())
    assert engine.collect_sums(fake, None, plugin.GrpoConfig()) is None


def test_calls_for_other_ends_pass_through():
    assert engine.informed(lambda logits: logits + 1, None, None, logits=1) == 2


def test_losses_without_configuration_pass_through():
    calls = []

    class Engine(BaseEngine):
        is_param_offload_enabled = is_optimizer_offload_enabled = False
        optimizer_zero_grad = optimizer_step = is_mp_src_rank_with_outputs = lambda self: None

        def forward_backward_batch(self, data, loss_function, forward_only=False):
            calls.append((loss_function, forward_only))

    loss_function = object()
    Engine().train_batch({}, loss_function)
    assert calls == [(loss_function, False)]
