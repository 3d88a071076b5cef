"""A rank other than 0 for the tests: python toy_rank.py [worlds|maths] [fault].

It does what the tests' own process does as rank 0, over the real channel and real Gloo.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
import torch.distributed as dist

from tests.trainer import rank_tasks
from tests.trainer.toy_env import ToyEnv
from trainer import follower
from trainer.channel_ends import Leader
from trainer.distributed import ProcessGroup, from_bytes
from trainer.launch import link_to_leader
from trainer.ranks import Rank, rank_seed


class BreakingEnv(ToyEnv):
    """Goes wrong in its third iteration."""

    fault = ""

    def step(self, actions):
        feedback = super().step(actions)
        if len(self.actions_seen) == 9:
            if self.fault == "boom":
                raise ValueError("boom")
            if self.fault == "infinite":
                feedback.reward[2] = float("inf")
        return feedback


def build(job):
    env = BreakingEnv(seed=rank_seed(0, Rank.from_environment().rank))
    env.fault = sys.argv[2] if len(sys.argv) > 2 else ""
    config = rank_tasks.CONFIG.model_copy(update=job["config"])
    if env.fault == "another rate":
        config = config.model_copy(update={"learning_rate": 2 * config.learning_rate})
    return env, config


def do_maths(rank):
    link, _ = link_to_leader(rank)
    leader = Leader(link)
    job = from_bytes(leader.wait_for_job())
    store = dist.TCPStore("127.0.0.1", job["store_port"], is_master=False)
    group = ProcessGroup(rank, torch.device("cpu"), leader, store)
    group.assemble([], lambda: False)
    group.keep_worlds(1, rank_tasks.do_all(group))
    leader.wait_for_stop()


if __name__ == "__main__":
    rank = Rank.from_environment()
    code = 0
    if sys.argv[1] == "maths":
        do_maths(rank)
    else:
        code = follower.follow(rank, build, lambda job: torch.device("cpu"))
    os._exit(code)
