"""What is told of a stage agrees with the trainer's own tensors."""

import math
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch

from tests.trainer.stopped import different, small_trainer, stopped_behind
from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig
from trainer.stages import Stage
from trainer.telemetry import Position
from trainer.tensors import NamedTensor, stage_tensors, summarize
from trainer.trace import ALL_COLUMNS, NEWEST, TraceRequest
from trainer.tracing import Tracer, has_run
from trainer.views import PICTURE_COLUMNS, tensor_view

T, N, M = 4, 8, 16
RECURRENT = different(
    actor=ActorConfig(hidden_dims=(8,), rnn_type="gru", rnn_hidden_dim=8),
    critic=CriticConfig(hidden_dims=(8,)),
)
MID_ROLLOUT = Position(1, Stage.ACT_STEP, 2)
BEHIND_STORE = Position(1, Stage.STORE, 3)
BEHIND_TARGETS = Position(1, Stage.TARGETS, T)
MID_UPDATE = Position(1, Stage.OPTIMIZE, T, 1, 0)


def look(trainer, stage, **request):
    return Tracer(trainer).trace(TraceRequest(stage, **request), in_full=True)


@pytest.fixture(scope="module")
def mid_update():
    return stopped_behind(MID_UPDATE)


def tensors_in(value):
    """Every torch tensor anywhere in plain data."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors_in(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from tensors_in(getattr(value, field.name))


@pytest.mark.parametrize("config", [different(), RECURRENT], ids=["plain", "memory"])
@pytest.mark.parametrize(
    "position", [Position(0, Stage.OBSERVE, 0), MID_ROLLOUT, BEHIND_STORE, MID_UPDATE]
)
def test_every_stage_and_every_tensor_can_be_looked_at_from_anywhere(position, config):
    trainer = stopped_behind(position, config)
    tracer = Tracer(trainer)
    for stage in Stage:
        for entry in [NamedTensor("", "", torch.empty(0)), *stage_tensors(trainer, stage)]:
            for in_full in (True, False):
                request = TraceRequest(stage, 99, NEWEST, entry.name, 99, 99)
                trace = tracer.trace(request, in_full=in_full)
                assert list(tensors_in(trace)) == []
                assert trace.request.world == N - 1
                assert 0 <= trace.request.step < T
                if entry.name and entry.tensor.numel():
                    assert trace.view.name == entry.name


def test_looking_changes_nothing():
    seen, unseen = small_trainer(), small_trainer()
    tracer = Tracer(seen)

    def look_around(position):
        for stage in Stage:
            tracer.trace(TraceRequest(stage, tensor="ratio"), in_full=position.step % 2 == 0)

    seen.watcher.leaving_hooks.append(look_around)
    for _ in range(2):
        seen.iterate()
        unseen.iterate()
    for one, other in zip(seen.actor.parameters(), unseen.actor.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("at", "stages"),
    [
        (Position(3, Stage.OBSERVE, 0), [Stage.OBSERVE]),
        (Position(3, Stage.ACT_STEP, 0), [Stage.OBSERVE, Stage.ACT_STEP]),
        (Position(3, Stage.OBSERVE, 1), [Stage.OBSERVE, Stage.ACT_STEP, Stage.STORE]),
        (Position(3, Stage.SAMPLE, 4), list(Stage)[:5]),
        (Position(3, Stage.FRESH, 4), list(Stage)),
    ],
)
def test_it_is_known_which_stages_have_run(at, stages):
    assert [stage for stage in Stage if has_run(stage, at)] == stages


def test_observe_names_the_terms_of_the_row():
    trainer = stopped_behind(MID_ROLLOUT)
    trace = look(trainer, Stage.OBSERVE, world=3)
    assert trace.request.step == 2
    assert [(term.group, term.term, term.first) for term in trace.numbers.terms] == [
        ("policy", "x", 0),
        ("policy", "noise", 1),
    ]
    row = [float(term.values[0]) for term in trace.numbers.terms]
    assert row == trainer.obs["policy"][3].tolist()
    earlier = look(trainer, Stage.OBSERVE, world=3, step=0).numbers
    assert earlier.terms[0].values[0] == trainer.rollout.observations["policy"][0, 3, 0]


def test_act_step_tells_the_sample_and_what_was_sent():
    trainer = stopped_behind(MID_ROLLOUT, different(clip_actions=0.1))
    numbers = look(trainer, Stage.ACT_STEP, world=5).numbers
    assert numbers.names == ("push",)
    assert numbers.action[0] == trainer.decision.action[5, 0]
    assert abs(numbers.sent[0]) <= 0.1 + 1e-6
    noise = (numbers.action - numbers.mean) / numbers.std
    by_hand = -0.5 * noise[0] ** 2 - math.log(numbers.std[0]) - 0.5 * math.log(2 * math.pi)
    assert by_hand == pytest.approx(numbers.log_prob, abs=1e-5)
    assert numbers.reward == trainer.feedback.reward[5]


def test_store_shows_the_row_before_and_after():
    trainer = stopped_behind(MID_ROLLOUT)
    old = trainer.rollout.actions[2, 1].clone()
    numbers = look(trainer, Stage.STORE, world=1).numbers
    fields_before = {field.name: field for field in numbers.fields}
    assert numbers.step == 2
    assert fields_before["action"].before[0] == old[0]
    assert fields_before["action"].cached[0] == trainer.decision.action[1, 0]
    assert fields_before["action"].after is None

    trainer = stopped_behind(MID_ROLLOUT)
    tracer = Tracer(trainer)
    tracer.remember_row(1)
    trainer.store()
    trainer.position = BEHIND_STORE
    numbers = tracer.trace(TraceRequest(Stage.STORE, 1), in_full=True).numbers
    action = next(field for field in numbers.fields if field.name == "action")
    assert action.before[0] == old[0]
    assert action.after[0] == action.cached[0] == trainer.rollout.actions[2, 1, 0]


def test_a_time_outs_bonus_can_be_recomputed_from_what_is_told():
    trainer = stopped_behind(BEHIND_STORE)
    world = int(trainer.feedback.time_outs.to(torch.uint8).argmax())
    numbers = look(trainer, Stage.STORE, world=world).numbers
    assert numbers.time_out
    stored = next(field.after for field in numbers.fields if field.name == "reward")
    assert stored[0] == pytest.approx(numbers.reward + numbers.gamma * numbers.value, abs=1e-5)


def test_the_scan_told_is_the_scan_made():
    trainer = stopped_behind(BEHIND_TARGETS)
    for world in range(N):
        numbers = look(trainer, Stage.TARGETS, world=world).numbers
        following, advantage = numbers.last_value, 0.0
        for t in reversed(range(T)):
            going = 0.0 if numbers.dones[t] else 1.0
            delta = numbers.rewards[t] + numbers.gamma * going * following - numbers.values[t]
            advantage = delta + numbers.gamma * numbers.lam * going * advantage
            assert delta == pytest.approx(numbers.deltas[t], abs=1e-5)
            assert advantage == pytest.approx(numbers.raw[t], abs=1e-5)
            following = numbers.values[t]
        normalised = (numbers.raw - numbers.mean) / numbers.std
        np.testing.assert_allclose(normalised, numbers.advantages, atol=1e-4)
    assert trainer.rollout.dones.any()


def test_a_transition_is_found_in_the_order_the_mini_batches_read(mid_update):
    permutation = mid_update.mini_batches.permutation
    for t, n in ((0, 0), (1, 3), (3, 7)):
        numbers = look(mid_update, Stage.SAMPLE, step=t, world=n).numbers
        assert permutation[numbers.place] == t * N + n
        assert numbers.window[t, n - numbers.first_world] == numbers.place // M
    assert numbers.heads.shape == (2, 16)
    np.testing.assert_array_equal(numbers.heads.ravel(), permutation.numpy())


def test_a_network_with_a_memory_reads_whole_worlds():
    trainer = stopped_behind(MID_UPDATE, RECURRENT)
    numbers = look(trainer, Stage.SAMPLE, step=1, world=5).numbers
    assert numbers.whole_worlds
    assert numbers.window[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert numbers.place == M + 1 * 4 + (5 - 4)


def test_the_ratio_told_is_that_of_the_chosen_transition(mid_update):
    results = mid_update.results
    assert len(results) == 3
    permutation = mid_update.mini_batches.permutation.tolist()
    for place in (2, M + 5):
        t, n = divmod(permutation[place], N)
        numbers = look(mid_update, Stage.OPTIMIZE, step=t, world=n).numbers
        chosen = numbers.chosen
        assert chosen.mini_batch == place // M
        assert chosen.epoch == (1 if place < M else 0)
        step = chosen.epoch * 2 + chosen.mini_batch
        assert chosen.ratio == results[step].ratio[place % M]
        assert chosen.old_log_prob == mid_update.rollout.log_probs[t, n]
    assert numbers.kl.tolist() == pytest.approx([result.kl for result in results])
    assert numbers.ratio_counts.sum() == M


def test_fresh_says_what_stays():
    trainer = stopped_behind(Position(1, Stage.FRESH, T))
    numbers = look(trainer, Stage.FRESH, world=2).numbers
    assert numbers.cursor == 0
    assert numbers.obs.tolist() == trainer.obs["policy"][2].tolist()
    assert numbers.episode_length == trainer.env.episode_length[2]
    again = look(trainer, Stage.FRESH).numbers
    assert again.weights == numbers.weights
    with torch.no_grad():
        trainer.actor.mlp[0].bias += 1e-6
    assert look(trainer, Stage.FRESH).numbers.weights != numbers.weights


# --- tensors ----------------------------------------------------------------------------------


def test_a_bad_entry_is_named_by_its_index_and_its_observation_term():
    trainer = stopped_behind(BEHIND_STORE)
    trainer.rollout.observations["policy"][1, 6, 1] = math.nan
    trainer.rollout.observations["policy"][2, 0, 0] = math.inf
    trace = look(trainer, Stage.STORE)
    obs = next(t for t in trace.tensors if t.name == "rollout.obs.policy")
    assert (obs.nan, obs.inf) == (1, 1)
    assert obs.bad_index == (1, 6, 1)
    assert obs.bad_name == "noise"
    assert math.isfinite(obs.mean)


def test_a_bad_action_is_named_by_what_it_drives():
    trainer = stopped_behind(MID_ROLLOUT)
    trainer.decision.action[4, 0] = math.nan
    action = next(t for t in look(trainer, Stage.ACT_STEP).tensors if t.name == "action")
    assert (action.bad_index, action.bad_name) == ((4, 0), "push")


class TellsTerms(ToyEnv):
    """Tells what each reward term brought."""

    def step(self, actions):
        feedback = super().step(actions)
        self.reward_terms = {"near": 1.0, "calm": -0.1}
        calm = torch.zeros(self.num_envs)
        calm[3] = math.nan
        self.reward_values = torch.stack((feedback.reward, calm))
        return feedback._replace(reward=feedback.reward + calm)


def test_a_bad_reward_is_named_by_its_terms():
    trainer = stopped_behind(Position(0, Stage.STORE, 2), env=TellsTerms(N, 3))
    by_name = {t.name: t for t in look(trainer, Stage.ACT_STEP).tensors}
    assert (by_name["reward"].bad_index, by_name["reward"].bad_name) == ((3,), "calm")
    assert (by_name["reward_terms"].bad_index, by_name["reward_terms"].bad_name) == ((3, 1), "calm")
    numbers = look(trainer, Stage.ACT_STEP, world=3).numbers
    assert [name for name, _ in numbers.reward_terms] == ["near", "calm"]


def test_statistics_and_histogram_of_a_tensor_by_hand():
    summary = summarize(NamedTensor("x", "[N]", torch.tensor([0.0, 1.0, 1.0, 4.0])))
    assert (summary.min, summary.max, summary.mean) == (0.0, 4.0, 1.5)
    assert summary.std == pytest.approx(1.5)
    assert sum(summary.histogram) == 4
    assert summary.histogram[0] == summary.histogram[-1] == 1
    assert summary.num_bytes == 16
    assert summary.bad_index == ()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.empty(0, 3),
        torch.full((4,), math.nan),
        torch.tensor([3e38, -3e38]),
        torch.tensor(7),
        torch.ones(5, dtype=torch.bool),
    ],
)
def test_tensors_without_a_spread_have_a_description_too(tensor):
    for in_full in (True, False):
        summary = summarize(NamedTensor("x", "[N]", tensor), in_full=in_full)
        assert summary.shape == tuple(tensor.shape)
        assert summary.nan == (4 if tensor.isnan().any() else 0)


def test_a_part_of_a_large_tensor_has_much_the_same_figures():
    tensor = torch.randn(300, 1000, generator=torch.Generator().manual_seed(0))
    whole = summarize(NamedTensor("x", "[N]", tensor))
    part = summarize(NamedTensor("x", "[N]", tensor), in_full=False)
    assert sum(part.histogram) < 70_000
    assert part.mean == pytest.approx(whole.mean, abs=0.02)
    assert part.std == pytest.approx(whole.std, abs=0.02)


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "rmsprop"])
def test_the_update_over_the_weights_is_that_of_the_last_step(optimizer):
    trainer = stopped_behind(MID_UPDATE, different(optimizer=optimizer))
    weight = trainer.actor.mlp[0].weight
    before = weight.detach().clone()
    trainer.position = Position(1, Stage.OPTIMIZE, T, 1, 1)
    trainer.optimize()
    step = (weight.detach() - before).norm() / weight.detach().norm()
    told = next(
        t.update_ratio
        for t in look(trainer, Stage.OPTIMIZE).tensors
        if t.name == "actor.mlp.0.weight"
    )
    assert told == pytest.approx(math.log10(step), abs=0.01)


# --- one tensor, large ------------------------------------------------------------------------


def test_a_picture_over_steps_and_worlds_marks_ends_and_bad_entries():
    trainer = stopped_behind(BEHIND_TARGETS)
    trainer.rollout.rewards[2, 4] = math.nan
    view = look(trainer, Stage.TARGETS, step=1, world=6, tensor="rollout.rewards").view
    assert (view.rows, view.columns, view.num_rows, view.num_columns) == ("t", "n", T, N)
    np.testing.assert_array_equal(view.dones, trainer.rollout.dones[..., 0].numpy())
    assert view.bad[2, 4]
    assert view.bad.sum() == 1
    assert math.isnan(view.picture[2, 4])
    assert view.value == trainer.rollout.rewards[1, 6]
    assert view.along.tolist() == trainer.rollout.rewards[:, 6, 0].tolist()


def test_a_column_of_the_last_axis_can_be_chosen():
    trainer = stopped_behind(BEHIND_STORE)
    obs = trainer.rollout.observations["policy"]
    name = "rollout.obs.policy"
    view = look(trainer, Stage.STORE, step=2, world=3, tensor=name).view
    assert view.depth_column == ALL_COLUMNS
    assert view.depth_names == ("x", "noise")
    assert view.depth.tolist() == obs[2, 3].tolist()
    assert view.value == pytest.approx(float(obs[2, 3].square().mean().sqrt()))
    chosen = look(trainer, Stage.STORE, step=2, world=3, tensor=name, column=1).view
    np.testing.assert_array_equal(chosen.picture, obs[:3, :, 1].numpy())


def test_large_tensors_are_averaged_into_bins():
    values = torch.arange(1000.0).repeat(2, 1)
    view = tensor_view(NamedTensor("w", "[out,in]", values), TraceRequest(), torch.empty(0), 0)
    assert view.picture.shape == (2, PICTURE_COLUMNS)
    assert view.num_columns == 1000
    np.testing.assert_allclose(view.picture.mean(), 499.5, atol=0.5)
    assert (np.diff(view.picture[0]) > 0).all()


def test_a_sample_of_a_mini_batch_is_the_chosen_transition(mid_update):
    place = 3  # in mini-batch 0, which is the one in hand
    t, n = divmod(int(mid_update.mini_batches.permutation[place]), N)
    view = look(mid_update, Stage.OPTIMIZE, step=t, world=n, tensor="mini_batch.returns").view
    assert (view.columns, view.column) == ("m", place)
    assert view.value == mid_update.rollout.returns[t, n]
