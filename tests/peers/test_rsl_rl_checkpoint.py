"""Checkpoints go both ways between RSL-RL's runner and us: weights, moments, rate, counters."""

import pytest
import torch
from tensordict import TensorDict

from tests.peers.rsl_rl_points import NUM_ACTIONS, NUM_ENVS, NUM_OBS, make_runner
from trainer import rsl_rl
from trainer.checkpoint import CheckpointError, load, save
from trainer.config import TrainerConfig
from trainer.keeping import copied
from trainer.misfits import misfits
from trainer.policy import Actor, Critic
from trainer.rnd import RandomNetworkDistillation
from trainer.update import Learner

RND = {"num_outputs": 2, "state_normalization": True, "reward_normalization": True, "weight": 1.0}
KINDS = {
    "plain": ({}, {}),
    "normalised": ({"obs_normalization": True}, {}),
    "log std": ({"distribution": {"std_type": "log"}}, {"std_type": "log"}),
    "std of the network": (
        {"distribution": {"class_name": "HeteroscedasticGaussianDistribution"}},
        {"state_dependent_std": True},
    ),
    "gru": ({"recurrent": {"rnn_type": "gru", "rnn_hidden_dim": 7}}, {}),
    "lstm": (
        {
            "recurrent": {"rnn_type": "lstm", "rnn_hidden_dim": 7, "rnn_num_layers": 2},
            "obs_normalization": True,
        },
        {},
    ),
    "sgd": ({"algorithm": {"optimizer": "sgd"}}, {}),
    "rmsprop": ({"algorithm": {"optimizer": "rmsprop"}}, {}),
    "rnd": (
        {
            "algorithm": {
                "rnd_cfg": {**RND, "predictor_hidden_dims": [-1], "target_hidden_dims": [-1]}
            }
        },
        {},
    ),
}


def config_of(kind):
    """Our settings for one of the kinds."""
    theirs, actor = KINDS[kind]
    network = {
        "hidden_dims": [8, 6],
        "obs_normalization": theirs.get("obs_normalization", False),
        **theirs.get("recurrent", {}),
    }
    return TrainerConfig(
        num_steps_per_env=6,
        num_mini_batches=2,
        actor={**network, **actor},
        critic=network,
        optimizer=theirs.get("algorithm", {}).get("optimizer", "adam"),
        rnd=RND if kind == "rnd" else None,
    )


def make_ours(kind, seed=1):
    torch.manual_seed(seed)
    config = config_of(kind)
    actor, critic = Actor(config.actor, NUM_OBS, NUM_ACTIONS), Critic(config.critic, NUM_OBS)
    rnd = None
    if config.rnd is not None:
        rnd = RandomNetworkDistillation(config.rnd, NUM_OBS, NUM_ENVS, 0.1)
    return config, actor, critic, rnd


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def trained_there(kind):
    runner = make_runner(**copied_settings(KINDS[kind][0]))
    runner.learn(3)
    runner.alg.learning_rate = runner.alg.optimizer.param_groups[0]["lr"] = 3.7e-4
    return runner


def copied_settings(settings):
    return {k: copied_settings(v) if isinstance(v, dict) else v for k, v in settings.items()}


def moments_by_name(optimizer, networks):
    """What an optimizer keeps, by network and parameter."""
    return {
        f"{owner}.{name}": dict(optimizer.state.get(parameter, {}))
        for owner, network in networks.items()
        for name, parameter in network.named_parameters()
    }


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, kept in ours.items():
        assert kept.keys() == theirs[name].keys(), name
        for part, value in kept.items():
            if value is None:
                assert theirs[name][part] is None
            else:
                torch.testing.assert_close(value, theirs[name][part], rtol=0, atol=0)


def observations():
    obs = torch.randn(NUM_ENVS, NUM_OBS, generator=torch.Generator().manual_seed(4))
    return obs, TensorDict({"policy": obs}, batch_size=[NUM_ENVS])


def assert_equal_decisions(kind, actor, critic, runner):
    obs, theirs = observations()
    policy = runner.get_inference_policy()
    for model in (policy, runner.alg.critic):
        if model.is_recurrent:
            model.rnn.hidden_state = None
    with torch.no_grad():
        mean, _ = actor.decide(obs, actor.initial_hidden(NUM_ENVS))
        value, _ = critic.evaluate(obs, critic.initial_hidden(NUM_ENVS))
        torch.testing.assert_close(mean, policy(theirs), atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(value, runner.alg.critic(theirs), atol=1e-6, rtol=1e-5)


def test_a_run_of_theirs_goes_on_in_ours(kind, tmp_path):
    runner = trained_there(kind)
    runner.save(tmp_path / "model_2.pt")
    config, actor, critic, rnd = make_ours(kind)
    foreign = rsl_rl.read(tmp_path / "model_2.pt")
    inputs = [("x", NUM_OBS)]
    assert not list(misfits("actor", foreign.actor, actor.state_dict(), inputs))
    assert not list(misfits("critic", foreign.critic, critic.state_dict(), inputs))
    state, notes = rsl_rl.convert(foreign, config, actor, critic, rnd)
    assert notes == []
    assert state["completed_iterations"] == 3

    learner = Learner(config, actor, critic, rnd=rnd)
    actor.load_state_dict(state["actor"])
    critic.load_state_dict(state["critic"])
    learner.load_state_dict(state["optimizer"])
    assert learner.learning_rate == 3.7e-4
    assert_equal_decisions(kind, actor, critic, runner)
    assert_same(
        moments_by_name(learner.optimizer, {"actor": actor, "critic": critic}),
        moments_by_name(
            runner.alg.optimizer, {"actor": runner.alg.actor, "critic": runner.alg.critic}
        ),
    )
    if rnd is not None:
        assert not list(misfits("rnd", foreign.rnd, rnd.state_dict(), inputs))
        rnd.load_training_state(state["rnd"])
        assert rnd.num_steps == 18
        obs, theirs = observations()
        runner.alg.rnd.eval()  # its statistics stay as they are
        rnd.reward_normalizer.emp_norm.until = 0
        torch.testing.assert_close(
            rnd.intrinsic_reward(obs), runner.alg.rnd.get_intrinsic_reward(theirs).detach()
        )
        assert_same(
            moments_by_name(rnd.optimizer, {"predictor": rnd.predictor}),
            moments_by_name(runner.alg.rnd.optimizer, {"predictor": runner.alg.rnd.predictor}),
        )


def trained_here(kind):
    """A state of ours behind a few optimizer steps of arbitrary gradients."""
    config, actor, critic, rnd = make_ours(kind)
    learner = Learner(config, actor, critic, rnd=rnd)
    generator = torch.Generator().manual_seed(8)
    for _ in range(3):
        for network in (actor, critic, *(() if rnd is None else (rnd.predictor,))):
            for parameter in network.parameters():
                parameter.grad = torch.randn(parameter.shape, generator=generator)
        learner.optimizer.step()
        if rnd is not None:
            rnd.optimizer.step()
    for network in (actor, critic):
        if config.actor.obs_normalization:
            network.obs_normalizer.update(torch.randn(50, NUM_OBS, generator=generator) + 1)
    learner.learning_rate = 4.2e-4
    state = {
        "actor": actor.state_dict(),
        "critic": critic.state_dict(),
        "optimizer": learner.state_dict(),
        "completed_iterations": 40,
        "env": {"anything": 1},
    }
    if rnd is not None:
        state["rnd"] = rnd.training_state()
    return learner, state


def test_a_run_of_ours_goes_on_in_theirs(kind, tmp_path):
    learner, state = trained_here(kind)
    save(tmp_path / "ours.pt", state)
    rsl_rl.write(tmp_path / "model_39.pt", load(tmp_path / "ours.pt"))
    assert [path.name for path in tmp_path.iterdir()].count("model_39.pt") == 1
    assert len(list(tmp_path.iterdir())) == 2

    runner = make_runner(**copied_settings(KINDS[kind][0]))
    runner.load(tmp_path / "model_39.pt")
    assert runner.current_learning_iteration == 39
    assert runner.alg.learning_rate == 4.2e-4
    assert_equal_decisions(kind, learner.actor, learner.critic, runner)
    networks = {"actor": runner.alg.actor, "critic": runner.alg.critic}
    assert_same(
        moments_by_name(learner.optimizer, {"actor": learner.actor, "critic": learner.critic}),
        moments_by_name(runner.alg.optimizer, networks),
    )
    runner.learn(1)  # and trains


def test_what_went_there_and_back_is_what_it_was(kind, tmp_path):
    _, state = trained_here(kind)
    rsl_rl.write(tmp_path / "model.pt", copied(state))
    config, actor, critic, rnd = make_ours(kind, seed=2)
    back, notes = rsl_rl.convert(rsl_rl.read(tmp_path / "model.pt"), config, actor, critic, rnd)
    assert notes == []
    assert back["completed_iterations"] == 40
    for name in ("actor", "critic"):
        assert_same({"": back[name]}, {"": dict(state[name])})
    for number, kept in state["optimizer"]["state"].items():
        assert_same({"": dict(kept)}, {"": back["optimizer"]["state"][number]})


def test_names_of_version_4_are_read(tmp_path):
    runner = trained_there("plain")
    held = runner.alg.save() | {"iter": 2, "infos": None}
    actor = dict(held["actor_state_dict"])
    std = actor.pop("distribution.std_param")
    torch.save(held | {"actor_state_dict": {"std": std, **actor}}, tmp_path / "model_2.pt")
    foreign = rsl_rl.read(tmp_path / "model_2.pt")
    assert torch.equal(foreign.actor["distribution.std_param"], std)
    config, actor, critic, _ = make_ours("plain")
    state, notes = rsl_rl.convert(foreign, config, actor, critic)
    learner = Learner(config, actor, critic)
    learner.load_state_dict(state["optimizer"])
    assert not notes
    theirs = runner.alg.optimizer.state[runner.alg.actor.distribution.std_param]["exp_avg"]
    assert torch.equal(learner.optimizer.state[actor.distribution.std_param]["exp_avg"], theirs)


def test_names_of_version_3_are_read(tmp_path):
    """It kept both networks in one module, whose optimizer counted std first, then the actor."""
    runner = trained_there("normalised")
    actor, critic = runner.alg.actor, runner.alg.critic
    held = {"std": actor.distribution.std_param.detach()}
    for name, model in (("actor", actor), ("critic", critic)):
        held |= {f"{name}.{key}": tensor for key, tensor in model.mlp.state_dict().items()}
        normalizer = model.obs_normalizer.state_dict()
        held |= {f"{name}_obs_normalizer.{key}": tensor for key, tensor in normalizer.items()}
    optimizer = runner.alg.optimizer.state_dict()
    torch.save(
        {"model_state_dict": held, "optimizer_state_dict": optimizer, "iter": 2, "infos": None},
        tmp_path / "model_2.pt",
    )
    config, ours, our_critic, _ = make_ours("normalised")
    state, notes = rsl_rl.convert(rsl_rl.read(tmp_path / "model_2.pt"), config, ours, our_critic)
    assert not notes
    ours.load_state_dict(state["actor"])
    our_critic.load_state_dict(state["critic"])
    learner = Learner(config, ours, our_critic)
    learner.load_state_dict(state["optimizer"])
    assert_equal_decisions("normalised", ours, our_critic, runner)
    assert_same(
        moments_by_name(learner.optimizer, {"actor": ours, "critic": our_critic}),
        moments_by_name(runner.alg.optimizer, {"actor": actor, "critic": critic}),
    )


class Anything:
    """An object that only code can make."""


def test_a_file_that_would_run_code_is_refused(tmp_path):
    path = tmp_path / "model_2.pt"
    trained_there("plain").save(path, infos={"env": Anything()})
    with pytest.raises(CheckpointError, match=r"holds an object of \S+Anything, which only code"):
        rsl_rl.read(path)


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({"model_state_dict": {}, "iter": 1}, "not a whole checkpoint of RSL-RL: the weights of"),
        ({"model_state_dict": {}, "obs_norm_state_dict": {}}, "made by RSL-RL 2 with normalised"),
        ({"schema_version": 1}, "a checkpoint of this program"),
        ({"anything": 1}, "holds no networks of that"),
        ([1, 2], "holds no networks of that"),
        ({"actor_state_dict": {}, "critic_state_dict": {}}, "not a whole checkpoint of RSL-RL"),
    ],
)
def test_another_file_is_told_from_a_checkpoint(held, told, tmp_path):
    torch.save(held, tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=told):
        rsl_rl.read(tmp_path / "model.pt")


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "model.pt"
    trained_there("plain").save(path)
    whole = path.read_bytes()
    for text in (whole[: len(whole) // 2], b"", b"nonsense"):
        path.write_bytes(text)
        with pytest.raises(CheckpointError, match="not readable as a checkpoint"):
            rsl_rl.read(path)


def test_another_optimizer_leaves_its_rate_alone(tmp_path):
    trained_there("plain").save(tmp_path / "model.pt")
    foreign = rsl_rl.read(tmp_path / "model.pt")
    for optimizer in ("sgd", "rmsprop"):
        config = config_of("plain").model_copy(update={"optimizer": optimizer})
        _, actor, critic, _ = make_ours("plain")
        state, notes = rsl_rl.convert(foreign, config, actor, critic)
        assert notes == [
            f"the optimizer's state is not that of {optimizer}: its averages begin at 0"
        ]
        learner = Learner(config, actor, critic)
        learner.load_state_dict(state["optimizer"])
        assert learner.learning_rate == 3.7e-4


@pytest.mark.parametrize(
    ("theirs", "ours", "told"),
    [
        ("plain", "normalised", "trainer.actor.obs_normalization = true by the preset, false"),
        ("normalised", "plain", "import with --set trainer.actor.obs_normalization=true"),
        ("log std", "plain", "import with --set trainer.actor.std_type=log"),
        ("gru", "plain", "import with --set trainer.actor.rnn_type=gru"),
        ("lstm", "gru", "trainer.actor.rnn_num_layers = 1 by the preset, 2 in the checkpoint"),
        ("plain", "gru", "the preset must leave trainer.actor.rnn_type unset"),
        ("std of the network", "plain", "trainer.actor.std_type"),
    ],
)
def test_settings_that_do_not_fit_are_named(theirs, ours, told):
    there, here = (make_ours(kind)[1].state_dict() for kind in (theirs, ours))
    assert told in "\n".join(misfits("actor", there, here, [("x", NUM_OBS)]))
