"""Live edits: what they change, what they refuse, and that they are taken back and resumed with."""

import pytest
import torch

from tests.trainer.adjustable_env import AdjustableToyEnv
from tests.trainer.test_session import SMALL
from trainer.config import RndConfig, SymmetryConfig, TrainerConfig, WeightSchedule
from trainer.control import Edit
from trainer.keeping import copied
from trainer.live import checked_config
from trainer.loop import Trainer


def make(**changes):
    return Trainer(AdjustableToyEnv(), SMALL.model_copy(update=changes))


def value_of(trainer, key):
    return next(one.value for one in trainer.live.adjustables() if one.key == key)


def test_what_a_value_means_is_one_line_of_text():
    told = [one.about for one in make().live.adjustables()]
    assert not [text for text in told if "\n" in text]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("entropy_coef", 0.2),
        ("clip_param", 1e-4),
        ("desired_kl", 1e-6),
        ("value_loss_coef", 0.1),
        ("max_grad_norm", 0.1),
    ],
)
def test_an_edited_coefficient_is_what_the_next_update_computes_with(field, value):
    edited, straight = make(), make()
    for trainer in (edited, straight):
        trainer.iterate()
    edited.live.apply(Edit(f"trainer.{field}", value))
    configured = make(**{field: value})
    configured.load_state_dict(copied(straight.state_dict()))
    for trainer in (edited, straight, configured) * 3:
        trainer.iterate()
    assert edited.config == configured.config
    assert torch.equal(_weights(edited), _weights(configured))
    assert not torch.equal(_weights(edited), _weights(straight))


def _weights(trainer):
    networks = (trainer.actor, trainer.critic)
    return torch.cat([p.detach().flatten() for net in networks for p in net.parameters()])


def test_an_edited_learning_rate_is_no_more_moved_by_the_kl_and_undo_gives_both_back():
    trainer = make()
    trainer.iterate()
    before = trainer.learner.learning_rate
    applied = trainer.live.apply(Edit("trainer.learning_rate", 3e-4, "KL hunts"))
    assert applied.text == (
        f"trainer.learning_rate {before:.6g} to 0.0003, trainer.schedule adaptive to fixed"
    )
    trainer.iterate()
    assert {result.learning_rate for result in trainer.results} == {3e-4}
    assert trainer.live.undo() is applied
    assert trainer.config.schedule == "adaptive"
    assert trainer.learner.learning_rate == before
    assert trainer.live.edits == ()


def test_worlds_take_what_is_theirs():
    trainer = make()
    trainer.live.apply(Edit("env.rewards.near.weight", 3.0))
    trainer.live.apply(Edit("env.commands.start.x", (-0.5, 0.5)))
    assert (trainer.env.weight, trainer.env.start) == (3.0, (-0.5, 0.5))
    trainer.live.undo()
    trainer.live.undo()
    assert (trainer.env.weight, trainer.env.start) == (1.0, (-1.0, 1.0))
    with pytest.raises(ValueError, match="no edit to take back"):
        trainer.live.undo()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("trainer.clip_param", 0.0, r"trainer.clip_param = 0.0: must be greater than 0"),
        ("trainer.entropy_coef", -0.1, "must be greater than or equal to 0"),
        ("trainer.entropy_coef", float("nan"), "finite"),
        ("trainer.entropy_coef", "much", "must be a number"),
        ("trainer.schedule", "cosine", "'adaptive' or 'fixed'"),
        ("trainer.gamma", 0.9, "there is no trainer.gamma to edit"),
        ("env.rewards.far.weight", 1.0, "there is no env.rewards.far.weight"),
        ("env.rewards.near.weight", 1000.0, "100 is enough"),
        ("env.commands.start.x", (1.0, -1.0), "in order"),
        ("env.commands.start.x", 1.0, "two numbers"),
        ("env.commands.start.y", (0.0, 1.0), "it is read once"),
        ("trainer.clip_param", 0.2, "0.2 already"),
    ],
)
def test_what_is_not_allowed_or_without_effect_is_refused_and_changes_nothing(key, value, said):
    trainer = make()
    before = trainer.live.adjustables()
    with pytest.raises(ValueError, match=said):
        trainer.live.apply(Edit(key, value))
    assert trainer.live.adjustables() == before
    assert trainer.live.edits == ()


def test_the_desired_kl_has_no_effect_under_the_fixed_schedule():
    trainer = make(schedule="fixed")
    with pytest.raises(ValueError, match=r"fixed schedule; edit trainer.schedule first"):
        trainer.live.apply(Edit("trainer.desired_kl", 0.02))
    trainer.live.apply(Edit("trainer.learning_rate", 0.5))  # beyond what adaptive allows
    with pytest.raises(ValueError, match="range of the adaptive schedule"):
        trainer.live.apply(Edit("trainer.schedule", "adaptive"))
    trainer.live.apply(Edit("trainer.learning_rate", 1e-3))
    trainer.live.apply(Edit("trainer.schedule", "adaptive"))
    trainer.live.apply(Edit("trainer.desired_kl", 0.02))
    assert trainer.config.desired_kl == 0.02


def test_the_weight_of_new_states_can_be_edited_unless_a_schedule_moves_it():
    rnd = RndConfig(weight=1.0)
    trainer = make(rnd=rnd)
    trainer.live.apply(Edit("trainer.rnd.weight", 2.0))
    assert trainer.rnd.weight == 2.0 * trainer.env.step_dt
    moved = rnd.model_copy(
        update={"weight_schedule": WeightSchedule(mode="step", final_step=5, final_value=0.0)}
    )
    with pytest.raises(ValueError, match="weight_schedule moves it"):
        make(rnd=moved).live.apply(Edit("trainer.rnd.weight", 2.0))


def test_all_values_together_must_still_fit():
    config = TrainerConfig(symmetry=SymmetryConfig(use_mirror_loss=True))
    edited = checked_config(config, {"trainer.symmetry.mirror_loss_coeff": 0.3})
    assert edited.symmetry.mirror_loss_coeff == 0.3
    with pytest.raises(ValueError, match="range of the adaptive schedule"):
        checked_config(config, {"trainer.learning_rate": 1.0})


def test_an_edited_run_goes_on_bit_for_bit_and_can_still_be_taken_back():
    straight = make()
    straight.iterate()
    straight.live.apply(Edit("trainer.entropy_coef", 0.1, "more noise"))
    straight.live.apply(Edit("trainer.learning_rate", 3e-4))
    straight.live.apply(Edit("env.commands.start.x", (-0.5, 0.5)))
    straight.live.apply(Edit("env.rewards.near.weight", 2.0))
    straight.iterate()
    resumed = make()
    resumed.load_state_dict(copied(straight.state_dict()))
    assert resumed.live.edits == straight.live.edits
    assert resumed.config == straight.config
    for trainer in (straight, resumed):
        trainer.iterate()
    assert torch.equal(_weights(straight), _weights(resumed))
    for trainer in (straight, resumed):
        while trainer.live.edits:
            trainer.live.undo()
        trainer.iterate()
    assert torch.equal(_weights(straight), _weights(resumed))
    assert resumed.env.start == (-1.0, 1.0)
    assert resumed.config == straight.config
    assert resumed.config.model_copy(update={"learning_rate": SMALL.learning_rate}) == SMALL
