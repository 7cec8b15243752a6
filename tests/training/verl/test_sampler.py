"""The order in which verl's trainer gets the responses of a rollout batch."""

import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("verl", reason="verl is not installed")
    pytest.importorskip("transfer_queue", reason="TransferQueue, of verl's trainer, is missing")
    from verl.trainer.ppo.v1 import replay_buffer

    from respo.training.verl.sampler import PromptOrder

# `./run peers` has no TransferQueue, `./run verl` has.
pytestmark = [pytest.mark.peers, pytest.mark.verl, pytest.mark.filterwarnings("ignore")]


def sampled(sampler_class, monkeypatch):
    """A batch of three prompts of two responses, of which the last ones were finished first."""
    tags = {uid: {"is_prompt": True, "status": "finished", "global_steps": 1} for uid in "cab"}
    for key in ("b_1_0", "b_0_0", "a_1_0", "c_1_0", "a_0_0", "c_0_0"):
        tags[key] = {"seq_len": 1}
    cleared = []
    monkeypatch.setattr(replay_buffer.tq, "kv_list", lambda: {"train": tags})
    monkeypatch.setattr(
        replay_buffer.tq, "kv_clear", lambda partition_id, keys: cleared.extend(keys)
    )
    sampler = sampler_class(
        trainer_mode="sync",
        trainer_config={},
        max_off_policy_threshold=8,
        max_off_policy_strategy="drop",
        sampler_kwargs={},
        refill_fn=None,
    )
    batch, _ = sampler.sample(global_steps=1, partition_id="train", batch_size=3)
    assert sorted(cleared) == ["a", "b", "c"]
    return batch


def test_responses_stand_in_the_order_of_their_prompts(monkeypatch):
    batch = sampled(PromptOrder, monkeypatch)
    assert batch.keys == ["c_0_0", "c_1_0", "a_0_0", "a_1_0", "b_0_0", "b_1_0"]
    assert len(batch.tags) == 6


def test_verls_own_order_is_that_of_finishing(monkeypatch):
    # If this fails, verl has mended it, and the sampler may go.
    batch = sampled(replay_buffer.ReplayBuffer, monkeypatch)
    assert batch.keys == ["b_1_0", "b_0_0", "a_1_0", "c_1_0", "a_0_0", "c_0_0"]
