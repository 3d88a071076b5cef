"""Networks with a memory: trajectories cut and put back, states carried, reset and restored."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.toy_env import ToyEnv
from trainer import checkpoint
from trainer.config import ActorConfig, CriticConfig, NetworkConfig, ObsGroups, TrainerConfig
from trainer.loop import Trainer, Unwatched
from trainer.mini_batches import WorldBlocks, sample
from trainer.policy import Actor
from trainer.recurrent import RNN, Memory, cut, reset
from trainer.rollout import Rollout
from trainer.stages import Stage
from trainer.tensors import stage_tensors


def dones_of(*worlds: str) -> torch.Tensor:
    """Dones [T, W] of worlds written as texts, x for a done."""
    return torch.tensor([[mark == "x" for mark in world] for world in worlds]).T


def test_worlds_are_cut_behind_every_done_world_by_world_in_time():
    pieces = cut(dones_of("...x..", ".x..x."))
    steps = torch.arange(12.0).view(6, 2, 1)  # step t of world w is 2 t + w
    padded = pieces.pad(steps).squeeze(-1).T.tolist()
    assert padded == [
        [0, 2, 4, 6],
        [8, 10, 0, 0],
        [1, 3, 0, 0],
        [5, 7, 9, 0],
        [11, 0, 0, 0],
    ]
    assert pieces.masks.T.tolist() == [
        [True] * 4,
        [True, True, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, False, False, False],
    ]
    assert pieces.worlds.tolist() == [0, 0, 1, 1, 1]
    assert pieces.continues.tolist() == [True, False, True, False, False]


def test_a_done_on_the_last_step_begins_no_piece():
    assert cut(dones_of("..x", "...")).worlds.tolist() == [0, 1]


@given(st.integers(1, 7), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_unpadding_undoes_padding(num_steps, num_worlds, seed):
    generator = torch.Generator().manual_seed(seed)
    dones = torch.rand(num_steps, num_worlds, generator=generator) < 0.3
    steps = torch.randn(num_steps, num_worlds, 3, generator=generator)
    pieces = cut(dones)
    assert torch.equal(pieces.unpad(pieces.pad(steps), num_worlds), steps)
    assert pieces.masks.sum() == num_steps * num_worlds
    assert len(pieces.worlds) == num_worlds + dones[:-1].sum()


def memory_of(rnn_type, num_layers=2, num_inputs=3):
    torch.manual_seed(0)
    return RNN(
        num_inputs, NetworkConfig(rnn_type=rnn_type, rnn_hidden_dim=5, rnn_num_layers=num_layers)
    )


@pytest.mark.parametrize("rnn_type", ["gru", "lstm"])
@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_whole_trajectories_give_what_single_steps_gave(rnn_type, num_steps, seed):
    rnn = memory_of(rnn_type)
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(num_steps, 4, 3, generator=generator)
    dones = torch.rand(num_steps, 4, generator=generator) < 0.3
    begin = tuple(
        torch.randn(state.shape, generator=generator) for state in rnn.initial(4)
    )  # in the middle of episodes
    hidden, features = begin, []
    with torch.no_grad():
        for row, done in zip(inputs, dones, strict=True):
            out, hidden = rnn.step(row, hidden)
            features.append(out)
            reset(hidden, done)
        pieces = cut(dones)
        whole = rnn(inputs, Memory(pieces, pieces.initial(begin)))
    torch.testing.assert_close(whole, torch.stack(features))


def test_only_finished_worlds_forget():
    hidden = (torch.ones(2, 3, 4), torch.ones(2, 3, 4))
    reset(hidden, torch.tensor([False, True, False]))
    for state in hidden:
        assert state.sum((0, 2)).tolist() == [8, 0, 8]


def test_state_dict_bears_the_names_of_rsl_rl():
    config = ActorConfig(hidden_dims=(4,), rnn_type="lstm", rnn_hidden_dim=5)
    names = list(Actor(config, 3, 2).state_dict())
    assert names[:1] == ["distribution.std_param"]
    assert names[-4:] == [
        f"rnn.rnn.{name}_l0" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]


def test_a_single_observation_is_no_trajectory():
    actor = Actor(ActorConfig(hidden_dims=(4,), rnn_type="gru"), 3, 2)
    with pytest.raises(ValueError, match="reads trajectories, or one step at a time"):
        actor(torch.zeros(2, 3))


# The loop.


def config_of(actor="gru", critic="lstm", **changes):
    network = {"hidden_dims": (6,), "rnn_hidden_dim": 5, "obs_normalization": True}
    return TrainerConfig(
        **{
            "seed": 1,
            "num_steps_per_env": 8,
            "num_mini_batches": 2,
            "num_learning_epochs": 2,
            "actor": ActorConfig(**network, rnn_type=actor),
            "critic": CriticConfig(**network, rnn_type=critic, rnn_num_layers=2),
            **changes,
        }
    )


def trainer_of(*kinds, watcher=None, max_episode_length=5, **changes):
    return Trainer(ToyEnv(4, max_episode_length), config_of(*kinds, **changes), watcher)


KINDS = [("gru", "gru"), ("lstm", "gru"), ("lstm", None), (None, "lstm")]


@pytest.mark.parametrize("kinds", KINDS)
def test_before_the_first_step_of_every_update_the_ratio_is_one(kinds):
    trainer = trainer_of(*kinds)
    for _ in range(3):
        trainer.iterate()
        assert trainer.rollout.dones.any()
        first = trainer.results[0]
        torch.testing.assert_close(first.ratio, torch.ones(16), atol=1e-5, rtol=0)
        assert first.kl == pytest.approx(0.0, abs=1e-6)
        assert first.clip_fraction == 0.0


@pytest.mark.parametrize("kinds", KINDS)
def test_the_critic_reads_its_own_values_again(kinds):
    trainer = trainer_of(*kinds, num_learning_epochs=1)
    trainer.iterate()
    while trainer.rollout.cursor < 8:
        trainer.observe()
        trainer.act_step()
        trainer.store()
    trainer.targets()
    for samples in sample(trainer.rollout, 2, trainer.generator, recurrent=True):
        with torch.no_grad():
            again = trainer.critic(samples.observations["policy"], samples.sequences.critic)
        torch.testing.assert_close(again, samples.values)


class HiddenWatcher(Unwatched):
    """Keeps the hidden states behind stages."""

    def __init__(self, *stages):
        self.stages, self.trainer, self.seen = stages, None, []

    def leaving(self, position, *, phase_ends):
        if position.stage in self.stages:
            states = (*self.trainer.actor_hidden, *self.trainer.critic_hidden)
            self.seen.append([state.clone() for state in states])


def test_a_finished_world_begins_without_memory_and_the_others_go_on():
    watcher = HiddenWatcher(Stage.STORE)
    trainer = watcher.trainer = trainer_of(watcher=watcher)
    trainer.iterate()
    for states, dones in zip(watcher.seen, trainer.rollout.dones[..., 0], strict=True):
        for state in states:
            assert not state[:, dones].any()
            assert state[:, ~dones].abs().sum((0, 2)).all()


def test_the_last_value_leaves_the_memories_as_they_are():
    watcher = HiddenWatcher(Stage.STORE, Stage.TARGETS, Stage.FRESH)
    trainer = watcher.trainer = trainer_of(watcher=watcher)
    trainer.iterate()
    *_, stored, behind_targets, behind_fresh = watcher.seen
    for one, other, last in zip(stored, behind_targets, behind_fresh, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one, last)


def test_memories_reach_over_the_end_of_a_rollout():
    trainer = trainer_of(max_episode_length=1000)
    trainer.iterate()
    carried = [state.clone() for state in trainer.actor_hidden]
    trainer.iterate()
    (kept,) = trainer.rollout.actor_hidden
    assert torch.equal(kept, carried[0])
    assert carried[0].any()


def test_mini_batches_are_blocks_of_neighbouring_worlds_with_all_their_steps():
    trainer = trainer_of()
    trainer.iterate()
    blocks = trainer.mini_batches
    assert isinstance(blocks, WorldBlocks)
    assert blocks.worlds.tolist() == [[0, 1], [2, 3]]
    for worlds, samples in zip(blocks.worlds, blocks, strict=True):
        assert torch.equal(samples.actions, trainer.rollout.actions[:, worlds])
        assert samples.actions.untyped_storage().data_ptr() == (
            trainer.rollout.actions.untyped_storage().data_ptr()
        ), "a view"


def test_worlds_that_would_be_left_out_are_refused():
    rollout = Rollout(4, 6, {"policy": 2}, 1, "cpu")  # 24 samples divide by 4, 6 worlds do not
    with pytest.raises(ValueError, match=r"^6 worlds do not divide by 4, .*; nearest: 3 or 6$"):
        sample(rollout, 4, torch.Generator(), recurrent=True)


def test_a_paused_recurrent_run_shows_worlds_pieces_and_memories():
    trainer = trainer_of()
    trainer.iterate()
    shown = {entry.name: entry for entry in stage_tensors(trainer, Stage.SAMPLE)}
    assert [entry.symbols for entry in shown.values() if "[K,W]" in entry.symbols] == ["[K,W]"]
    assert "permutation" not in shown
    shown = {entry.name: entry for entry in stage_tensors(trainer, Stage.OPTIMIZE)}
    assert shown["mini_batch.actions"].symbols == "[T,W,A]"
    assert shown["mini_batch.actions"].tensor.shape == (8, 2, 1)


@pytest.mark.parametrize("kinds", KINDS)
def test_five_and_five_iterations_are_ten_bit_for_bit(kinds, tmp_path):
    straight, first = trainer_of(*kinds), trainer_of(*kinds)
    for _ in range(5):
        straight.iterate()
        first.iterate()
    checkpoint.save(tmp_path / "model_5.pt", first.state_dict())
    again = trainer_of(*kinds)
    again.load_state_dict(checkpoint.load(tmp_path / "model_5.pt"))
    for _ in range(5):
        straight.iterate()
        again.iterate()
    for network in ("actor", "critic"):
        for name, tensor in getattr(straight, network).state_dict().items():
            assert torch.equal(tensor, getattr(again, network).state_dict()[name]), name
    for one, other in zip(
        (*straight.actor_hidden, *straight.critic_hidden),
        (*again.actor_hidden, *again.critic_hidden),
        strict=True,
    ):
        assert torch.equal(one, other)
    assert straight.learner.learning_rate == again.learner.learning_rate


def test_without_its_hidden_states_a_run_would_not_go_on_the_same():
    first = trainer_of(max_episode_length=1000)
    first.iterate()
    state = copy.deepcopy(first.state_dict())
    again = trainer_of(max_episode_length=1000)
    again.load_state_dict(state)
    again.actor_hidden = again.actor.initial_hidden(4)
    first.iterate()
    again.iterate()
    assert not torch.equal(first.rollout.means, again.rollout.means)


def test_a_memory_solves_what_no_single_observation_tells():
    # The position is shown on the first step of an episode alone; to return to 0 takes memory.
    class Blind(ToyEnv):
        def observe(self):
            shown = torch.where(self.episode_length == 0, self.x, 0.0)
            return {"policy": torch.stack((shown, torch.zeros_like(shown)), dim=1)}

        def step(self, actions):
            return super().step(3.0 * actions.clamp(-1, 1))

    errors = {}
    for rnn_type in (None, "gru"):
        network = {"hidden_dims": (16,), "rnn_type": rnn_type, "rnn_hidden_dim": 16}
        config = TrainerConfig(
            seed=3,
            num_steps_per_env=8,
            num_mini_batches=2,
            init_at_random_ep_len=False,
            obs_groups=ObsGroups(),
            actor=ActorConfig(**network, init_std=0.3),
            critic=CriticConfig(**network),
            entropy_coef=0.0,
        )
        trainer = Trainer(Blind(64, max_episode_length=8, seed=2), config)
        for _ in range(25):
            trainer.iterate()
        errors[rnn_type] = 1 - trainer.rollout.rewards[2:].mean().item()
    assert errors["gru"] < 0.7 * errors[None]
