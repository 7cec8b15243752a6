"""verl plugin: every objective as a policy loss of verl, with a typed configuration each.

Loaded by `import verl`, in the driver and in every process that inherits the environment:

    VERL_USE_EXTERNAL_MODULES=respo.training.verl.plugin

Two options select an objective, and its parameters follow; left out, they have the published
values. ASPO without its dual clip:

    actor_rollout_ref.actor.policy_loss.loss_mode=respo_aspo
    actor_rollout_ref.actor.policy_loss._target_=respo.training.verl.plugin.AspoConfig
    +actor_rollout_ref.actor.policy_loss.epsilon_high=0.28
    +actor_rollout_ref.actor.policy_loss.dual_clip=null

The objective `grpo_no_is` is `respo_grpo_no_is` and `GrpoNoIsConfig`; objectives of the folder
RESPO_METHODS are there as well. Parameters that an objective does not have or allow are refused
when the configuration is made. verl's own `actor.clip_ratio_low`, `actor.tau_pos` and their like
have no effect on these losses; `loss_agg_mode`, `entropy_coeff`, `use_kl_loss` and rollout
importance weights act as on verl's own.

Objectives that depend on the entropy need `actor_rollout_ref.actor.calculate_entropy=True`. Those
that depend on the whole mini-batch cost a second forward pass.

Metrics named `respo/...` are sums over the mini-batch, whatever its split into micro-batches and
ranks (`respo.training.verl.diagnostics`). Over the mini-batches of a step verl takes the mean of
these sums: quotients of them are right.
"""

from verl.trainer.ppo.core_algos import register_policy_loss

from respo.objectives import objective_names
from respo.training.verl.loss import objective_loss
from respo.training.verl.names import loss_mode
from respo.training.verl.settings import config_class

for _name in objective_names():
    register_policy_loss(loss_mode(_name))(objective_loss(_name))
    _class = config_class(_name, module=__name__)
    if globals().get(_class.__name__, _class).objective != _name:
        _other = globals()[_class.__name__].objective
        raise ValueError(
            f"the objectives {_other} and {_name} would both have the class {_class.__name__}; "
            f"rename yours"
        )
    globals()[_class.__name__] = _class
