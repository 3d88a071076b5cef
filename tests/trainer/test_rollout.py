import gc

import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.loop import Trainer
from trainer.rollout import Rollout, Transition

T, N, NUM_OBS, A = 3, 2, 4, 2


def transition(seed: int) -> Transition:
    torch.manual_seed(seed)
    return Transition(
        observations={"policy": torch.randn(N, NUM_OBS)},
        actions=torch.randn(N, A),
        rewards=torch.randn(N),
        dones=torch.tensor([True, False]),
        values=torch.randn(N, 1),
        log_probs=torch.randn(N, 1),
        means=torch.randn(N, A),
        stds=torch.rand(A),
    )


def rollout() -> Rollout:
    return Rollout(T, N, {"policy": NUM_OBS}, A, "cpu")


def test_a_step_lands_in_the_row_of_the_cursor():
    storage = rollout()
    steps = [transition(seed) for seed in range(2)]
    for step in steps:
        storage.add(step)
    assert storage.cursor == 2
    assert torch.equal(storage.observations["policy"][1], steps[1].observations["policy"])
    assert torch.equal(storage.rewards[1, :, 0], steps[1].rewards)
    assert torch.equal(storage.dones[1], torch.tensor([[True], [False]]))
    assert torch.equal(storage.stds[1], steps[1].stds.expand(N, A))
    assert torch.equal(storage.log_probs[0], steps[0].log_probs)


def test_a_step_too_many_overflows_and_clear_makes_room():
    storage = rollout()
    for seed in range(T):
        storage.add(transition(seed))
    with pytest.raises(OverflowError, match="holds 3 steps"):
        storage.add(transition(9))
    kept = storage.actions.clone()
    storage.clear()
    assert storage.cursor == 0
    assert torch.equal(storage.actions, kept), "clear moves the cursor and nothing else"
    storage.add(transition(9))
    assert torch.equal(storage.actions[0], transition(9).actions)


def test_flat_rows_are_time_major_and_share_memory():
    storage = rollout()
    for seed in range(T):
        storage.add(transition(seed))
    flat = storage.flat()
    for t in range(T):
        for n in range(N):
            assert torch.equal(flat.actions[t * N + n], storage.actions[t, n])
            obs = storage.observations["policy"][t, n]
            assert torch.equal(flat.observations["policy"][t * N + n], obs)
    assert flat.actions.data_ptr() == storage.actions.data_ptr()


def test_rows_added_in_inference_mode_can_enter_a_backward_pass():
    storage = rollout()
    with torch.inference_mode():
        storage.add(transition(0))
    weight = torch.randn(NUM_OBS, 1, requires_grad=True)
    (storage.observations["policy"][0] @ weight).sum().backward()
    assert weight.grad is not None
    storage.rewards += 1.0
    assert not storage.actions.is_inference()


def test_storage_is_exactly_the_fields_of_ppo():
    storage = rollout()
    per_sample = (NUM_OBS + A + A + A) * 4 + 6 * 4 - 3  # six scalars a sample, one of them a bool
    tensors = [
        *storage.observations.values(),
        storage.actions,
        storage.means,
        storage.stds,
        storage.rewards,
        storage.dones,
        storage.values,
        storage.log_probs,
        storage.returns,
        storage.advantages,
    ]
    held = {
        tensor.data_ptr()
        for value in vars(storage).values()
        for tensor in ([value] if isinstance(value, torch.Tensor) else [])
    }
    held |= {tensor.data_ptr() for tensor in storage.observations.values()}
    assert held == {tensor.data_ptr() for tensor in tensors}
    assert sum(t.numel() * t.element_size() for t in tensors) == T * N * per_sample


@pytest.mark.parametrize("rnn_type", [None, "gru"])
def test_during_an_update_there_is_one_observation_tensor_and_a_mini_batch_of_it(
    rnn_type, monkeypatch
):
    width = 2048  # so that nothing else is as large

    class WideEnv(ToyEnv):
        def observe(self):
            return {"policy": torch.randn(self.num_envs, width, generator=self.generator)}

    network = {"hidden_dims": (4,), "rnn_type": rnn_type, "rnn_hidden_dim": 4}
    config = TrainerConfig(
        seed=1,
        num_steps_per_env=8,
        num_mini_batches=4,
        num_learning_epochs=2,
        actor=ActorConfig(**network),
        critic=CriticConfig(**network),
    )
    trainer = Trainer(WideEnv(8, max_episode_length=1000), config)
    row = width * 4
    rollout = {trainer.rollout.observations["policy"].data_ptr(): 8 * 8 * row}
    weights = {parameter.shape for parameter in trainer.actor.parameters()}
    others = []  # sizes of what has the width of an observation, beside the rollout
    optimize = trainer.learner.optimize

    def watched(batch, **how):
        gc.collect()
        storages = {
            thing.untyped_storage().data_ptr(): thing.untyped_storage().nbytes()
            for thing in gc.get_objects()
            if type(thing) is torch.Tensor
            and thing.shape[-1:] == (width,)
            and thing.shape not in weights
        }
        others.append([size for place, size in storages.items() if place not in rollout])
        return optimize(batch, **how)

    monkeypatch.setattr(trainer.learner, "optimize", watched)
    trainer.iterate()
    obs = 8 * row  # of the present state
    for sizes in others:
        batch = 0 if rnn_type else 16 * row  # whole worlds are views of the rollout
        assert sum(sizes) == obs + batch
    assert len(others) == 8
