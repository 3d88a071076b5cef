"""The optimizer to choose, and states that must not be taken for another's."""

import pytest
import torch

from tests.trainer.test_update import collect, make_learner, update, weights
from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.loop import Trainer

KINDS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
}


@pytest.mark.parametrize("name", KINDS)
def test_it_steps_as_torchs_own_does(name):
    learner = make_learner(optimizer=name)
    assert type(learner.optimizer) is KINDS[name]
    parameters = [weight.requires_grad_() for weight in weights(learner)]
    reference = KINDS[name](parameters, lr=1e-3)  # torch's defaults, and its plain loop
    for _ in range(3):
        for ours, theirs in zip(
            learner.optimizer.param_groups[0]["params"], parameters, strict=True
        ):
            ours.grad = torch.randn_like(ours)
            theirs.grad = ours.grad.clone()
        learner.optimizer.step()
        reference.step()
    for ours, theirs in zip(weights(learner), parameters, strict=True):
        torch.testing.assert_close(ours, theirs.detach(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_two_and_two_iterations_are_four_bit_for_bit(name):
    network = {"hidden_dims": (4,)}
    config = TrainerConfig(
        seed=1,
        num_steps_per_env=4,
        num_mini_batches=2,
        optimizer=name,
        actor=ActorConfig(**network),
        critic=CriticConfig(**network),
    )
    straight, first, again = (Trainer(ToyEnv(), config) for _ in range(3))
    for trainer in (straight, straight, first, first):
        trainer.iterate()
    again.load_state_dict(first.state_dict())
    for trainer in (straight, straight, again, again):
        trainer.iterate()
    for one, other in zip(straight.actor.parameters(), again.actor.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(("saved", "ours"), [("sgd", "adam"), ("adam", "rmsprop")])
def test_a_state_of_another_optimizer_is_refused(saved, ours):
    other = make_learner(optimizer=saved)
    update(other, collect(other))
    with pytest.raises(ValueError, match="of another kind"):
        make_learner(optimizer=ours).load_state_dict(other.state_dict())


def test_a_state_of_other_networks_is_refused_before_it_can_crash():
    other = make_learner()
    update(other, collect(other))
    wider = make_learner(critic=CriticConfig(hidden_dims=(17,)))
    with pytest.raises(ValueError, match=r"exp_avg of parameter 5 has shape \[16, 4\]"):
        wider.load_state_dict(other.state_dict())
    deeper = make_learner(critic=CriticConfig(hidden_dims=(16, 16)))
    with pytest.raises(ValueError, match=r"of 9 parameters, these networks have 11"):
        deeper.load_state_dict(other.state_dict())


def test_what_an_older_torch_did_not_save_is_filled_in():
    other = make_learner()
    update(other, collect(other))
    state = other.state_dict()
    for key in ("decoupled_weight_decay", "fused", "differentiable"):
        del state["param_groups"][0][key]
    learner = make_learner()
    learner.load_state_dict(state)
    assert learner.optimizer.param_groups[0]["fused"] is True
    update(learner, collect(learner))


def test_a_fixed_std_stays_through_an_update():
    learner = make_learner(
        actor=ActorConfig(hidden_dims=(16,), init_std=0.7, learn_std=False), entropy_coef=0.1
    )
    update(learner, collect(learner))
    assert learner.actor.std.tolist() == pytest.approx([0.7, 0.7])
