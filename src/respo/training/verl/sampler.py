"""The rollout batch in the order of its prompts.

    trainer.v1.sampler.custom_sampler.path=pkg://respo.training.verl.sampler
    trainer.v1.sampler.custom_sampler.name=PromptOrder

verl 0.9.1 hands out the responses of a rollout batch as they were finished, so that the first of
its N updates would see the shortest responses and the last one the longest. Ranks share each update
in `respo.training.verl.balance`.
"""

from typing import Any

from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

from respo.training.verl import balance

# The trainer imports this module before its first rollout batch.
balance.install()


class PromptOrder(ReplayBuffer):
    """verl's replay buffer for the trainer `sync`; the responses of a prompt stand together."""

    def _materialize_batch(
        self,
        partition_id: str,
        selected_prompt_uids: list[str],
        partition_snapshot: dict[str, dict],
    ) -> Any:
        # Known in the order in which the trainer has submitted them.
        place = {uid: at for at, uid in enumerate(self.prompt_global_steps[partition_id])}

        def position(key: str) -> tuple[int, int, int]:
            uid, session, index = key.rsplit("_", 2)
            return place[uid], int(session), int(index)

        in_order = sorted(
            (key for key in partition_snapshot if key.rsplit("_", 2)[0] in place), key=position
        )
        snapshot = {key: partition_snapshot[key] for key in in_order}
        return super()._materialize_batch(partition_id, selected_prompt_uids, snapshot)
