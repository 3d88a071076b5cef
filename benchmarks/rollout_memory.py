"""Count the memory of a rollout and its update, beside RSL-RL's for the same rollout.

    python benchmarks/rollout_memory.py [--num-envs 4096] [--num-obs 235] [--recurrent]

The first table is the rollout, tensor by tensor. The second counts every live tensor (each storage
once) with a full rollout, and with the first mini-batch in hand: networks and optimizer are left
out, as they are the same on both sides.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator

import torch
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from trainer.mini_batches import sample
from trainer.rollout import Rollout

NUM_STEPS, NUM_ACTIONS, NUM_MINI_BATCHES, HIDDEN_DIM = 24, 12, 4, 256


def live_bytes() -> int:
    """Bytes of all tensors that exist, views of one storage counted once."""
    gc.collect()
    storages = {}
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor:
            storage = thing.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def fields(rollout: Rollout) -> Iterator[tuple[str, torch.Tensor]]:
    """The rollout's tensors with their names."""
    yield from ((f"observations.{name}", obs) for name, obs in rollout.observations.items())
    yield from (pair for pair in vars(rollout).items() if isinstance(pair[1], torch.Tensor))
    for network in ("actor", "critic"):
        for index, state in enumerate(getattr(rollout, f"{network}_hidden")):
            yield f"{network}_hidden.{index}", state


def hidden(num_envs: int) -> tuple[torch.Tensor]:
    """Hidden state of a GRU."""
    return (torch.zeros(1, num_envs, HIDDEN_DIM),)


def ours(num_envs: int, num_obs: int, recurrent: bool) -> list[int]:
    """Print our rollout's table; return the bytes of the rollout, and with a mini-batch in hand."""
    rollout = Rollout(NUM_STEPS, num_envs, {"policy": num_obs}, NUM_ACTIONS, "cpu")
    if recurrent:
        rollout.actor_hidden, rollout.critic_hidden = hidden(num_envs), hidden(num_envs)
    print("| tensor | shape | MB |\n| --- | --- | ---: |")
    total = 0
    for name, tensor in fields(rollout):
        total += tensor.nbytes
        print(f"| {name} | {list(tensor.shape)} | {tensor.nbytes / 1e6:.2f} |")
    print(f"| together | | {total / 1e6:.2f} |\n")
    counted = [live_bytes()]
    batches = sample(rollout, NUM_MINI_BATCHES, torch.Generator(), recurrent=recurrent)
    batch = batches[0]
    if batch.sequences is not None:
        padded = batch.sequences.trajectories.pad(batch.observations["policy"])
    counted.append(live_bytes())
    if batch.sequences is not None:
        del padded
    return counted


def theirs(num_envs: int, num_obs: int, recurrent: bool) -> list[int]:
    """Return RSL-RL's bytes of the rollout, and with a mini-batch in hand."""
    obs = TensorDict({"policy": torch.zeros(num_envs, num_obs)}, batch_size=[num_envs])
    storage = RolloutStorage("rl", num_envs, NUM_STEPS, obs, [NUM_ACTIONS])
    for _ in range(NUM_STEPS):
        record = RolloutStorage.Transition()
        record.observations, record.actions = obs, torch.zeros(num_envs, NUM_ACTIONS)
        record.rewards = record.dones = torch.zeros(num_envs)
        record.values = torch.zeros(num_envs, 1)
        record.actions_log_prob = torch.zeros(num_envs)
        record.distribution_params = (record.actions, record.actions)
        state = hidden(num_envs)[0] if recurrent else None
        record.hidden_states = (state, state)
        storage.add_transition(record)
    del record, state, obs
    counted = [live_bytes()]
    make = storage.recurrent_mini_batch_generator if recurrent else storage.mini_batch_generator
    generator = make(NUM_MINI_BATCHES, 1)
    batch = next(generator)
    counted.append(live_bytes())
    del batch, generator
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-envs", type=int, default=4096)
    parser.add_argument("--num-obs", type=int, default=235)
    parser.add_argument("--recurrent", action="store_true", help="with a GRU in both networks")
    arguments = parser.parse_args()
    base = live_bytes()
    rows = [[count - base for count in side(**vars(arguments))] for side in (ours, theirs)]
    print("| | rollout, MB | with a mini-batch in hand, MB |\n| --- | ---: | ---: |")
    for name, (rollout, update) in zip(("ours", "RSL-RL"), rows, strict=True):
        print(f"| {name} | {rollout / 1e6:.1f} | {update / 1e6:.1f} |")


if __name__ == "__main__":
    main()
