"""How verl's trainer deals a rollout batch out to the data-parallel ranks."""

import types
import warnings

import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("verl", reason="verl is not installed")
    pytest.importorskip("transfer_queue", reason="TransferQueue, of verl's trainer, is missing")
    from verl.trainer.ppo.v1 import trainer_base

    from respo.training.verl.balance import deal, install

# `./run peers` has no TransferQueue, `./run verl` has.
pytestmark = [pytest.mark.peers, pytest.mark.verl, pytest.mark.filterwarnings("ignore")]

RANKS, UPDATES, PROMPTS, GROUP = 4, 8, 4, 2
MINI_BATCH = PROMPTS * GROUP


def test_two_ranks_by_hand():
    def halves(workloads, k_partitions, equal_size):
        assert (k_partitions, equal_size) == (2, True)
        return [[0, 3], [1, 2]] if workloads[0] == 9 else [[0, 1], [2, 3]]

    assert deal([9, 1, 1, 9, 5, 5, 5, 5], 2, 4, halves) == [[0, 3, 4, 5], [1, 2, 6, 7]]


class Batch:
    """What verl's trainer reorders: numbered responses of uneven lengths."""

    def __init__(self):
        lengths = torch.randint(10, 1000, (UPDATES * MINI_BATCH,), generator=torch.manual_seed(0))
        self.places = list(range(UPDATES * MINI_BATCH))
        self.tags = [{"seq_len": int(length)} for length in lengths]

    def __len__(self):
        return len(self.places)

    def reorder(self, order):
        self.places = [self.places[place] for place in order]


def updates_of(batch):
    """The responses of each update: every rank cuts its share into as many parts, in order."""
    share = len(batch) // RANKS
    shares = [batch.places[rank * share : (rank + 1) * share] for rank in range(RANKS)]
    part = share // UPDATES
    return [
        {place for each in shares for place in each[update * part : (update + 1) * part]}
        for update in range(UPDATES)
    ]


@pytest.fixture
def trainer():
    """What `_balance_batch` asks of verl's trainer."""
    group = types.SimpleNamespace(_dispatch_info={"actor": list(range(RANKS))})
    actor = types.SimpleNamespace(ppo_mini_batch_size=PROMPTS)
    roles = types.SimpleNamespace(actor=actor, rollout=types.SimpleNamespace(n=GROUP))
    return types.SimpleNamespace(
        actor_rollout_wg=group,
        config=types.SimpleNamespace(actor_rollout_ref=roles),
        tokenizer=types.SimpleNamespace(eos_token_id=0),
        _get_required_batch_multiple=lambda ranks: MINI_BATCH,
    )


def test_each_update_has_the_responses_of_its_own_prompts(trainer, monkeypatch):
    monkeypatch.setattr(trainer_base, "upsample_batch_to_divisible_size", lambda batch, *_: batch)
    balance_batch = trainer_base.PPOTrainer._balance_batch
    original = getattr(balance_batch, "__wrapped__", balance_batch)
    expected = [
        set(range(start, start + MINI_BATCH))
        for start in range(0, UPDATES * MINI_BATCH, MINI_BATCH)
    ]
    # If verl alone does it, it has mended it, and `respo.training.verl.balance` may go.
    assert updates_of(original(trainer, Batch(), {})) != expected
    monkeypatch.setattr(trainer_base.PPOTrainer, "_balance_batch", original)
    install()
    batch = trainer_base.PPOTrainer._balance_batch(trainer, Batch(), {})
    assert updates_of(batch) == expected
    assert trainer_base.get_seqlen_balanced_partitions.__module__.startswith("verl.")
