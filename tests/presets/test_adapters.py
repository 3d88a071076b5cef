from pathlib import Path

import pytest
import torch

from presets.adapters import base_for, build_adapter, parse, require_adapter, run_name
from presets.build import Device, build_env, new_session
from presets.export import export
from presets.loader import load, to_toml
from presets.problems import PresetError
from presets.resume import resumed_session
from presets.trained import find_trained

CPU = Device("cpu")
MINE = """
import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv

def make_env(num_envs, seed, gravity=9.8):
    def one():
        env = gymnasium.make("CartPole-v1")
        env.unwrapped.gravity = gravity
        return env
    return SyncVectorEnv([one] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)

def nothing(num_envs):
    return num_envs

number = 3
"""


def with_env(text, *settings, **flags):
    return load(base_for(text), settings, flags={"--env": text, **flags})


def refusal(text, *settings):
    with pytest.raises(PresetError) as caught:
        require_adapter(with_env(text, *settings))
    return str(caught.value)


def test_worlds_alone_make_a_preset_that_is_filed_under_their_name():
    preset = with_env("gymnasium:Pendulum-v1", **{"--num-envs": 8}).preset
    assert (preset.name, preset.env.adapter) == ("Pendulum-v1", "gymnasium:Pendulum-v1")
    assert preset.env.num_envs == 8
    Path("again.toml").write_text(to_toml(preset))
    assert load("again.toml").preset == preset


@pytest.mark.parametrize(
    ("text", "name", "base"),
    [
        ("gymnasium:CartPole-v1", "CartPole-v1", "gymnasium"),
        ("gymnasium:ALE/Pong-v5", "ALE-Pong-v5", "gymnasium"),
        ("mjlab:Mjlab-Cartpole-Balance", "Mjlab-Cartpole-Balance", "rsl_rl"),
        ("my.package:make_env", "my.package.make_env", "rsl_rl"),
        ("some/where/mine.py:make_env", "mine.make_env", "rsl_rl"),
    ],
)
def test_each_form_has_a_name_and_a_base(text, name, base):
    assert Path(base_for(text)).stem == base
    assert run_name(text) == name


@pytest.mark.parametrize("text", ["gymnasium", "gymnasium:", ":x", ""])
def test_what_names_no_worlds_is_refused_with_the_forms(text):
    with pytest.raises(PresetError, match=r"must be gymnasium:ID, mjlab:TASK, package.module:"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gymnasium:CartPole-v9", '--env "gymnasium:CartPole-v9": '),
        ("gymnasium:CartPole-v9", "did you mean CartPole-v1?"),
        ("no_such_module:make", "cannot be imported: ModuleNotFoundError"),
        ("missing.py:make", "cannot be imported: FileNotFoundError: no file missing.py"),
        ("mine.py:make_envs", "has no function make_envs; did you mean make_env?"),
        ("mine.py:number", "has no function number"),
    ],
)
def test_worlds_that_are_not_there_are_refused(text, said):
    Path("mine.py").write_text(MINE)
    assert said in refusal(text)


def test_options_that_do_not_fit_are_told_before_anything_is_made():
    text = "gymnasium:CartPole-v1"
    assert "cannot be made: " in refusal(text, "env.adapter_options.wings=2")
    with pytest.raises(PresetError):
        new_session(with_env(text, "env.adapter_options.wings=2"), CPU)
    assert not Path("runs").exists()


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'ppo-tui[gymnasium]'" in refusal("gymnasium:CartPole-v1")
    assert "pip install mjlab" in refusal("mjlab:X")


def test_a_function_of_a_file_is_called_with_what_it_takes():
    Path("mine.py").write_text(MINE)
    preset = with_env(
        "mine.py:make_env", "trainer.seed=1", "env.adapter_options.gravity=1.0"
    ).preset
    env = build_env(preset.model_copy(), CPU)
    assert env.num_envs == preset.env.num_envs
    assert env._envs.envs[0].unwrapped.gravity == 1.0
    assert env.step(torch.zeros(env.num_envs, 2)).reward.tolist() == [1.0] * env.num_envs
    env.close()


def test_a_function_that_returns_no_worlds_is_an_error_that_says_so():
    Path("mine.py").write_text(MINE)
    settings = with_env("mine.py:nothing").preset.env
    with pytest.raises(TypeError, match=r"mine.py:nothing returned a int: it must return"):
        build_adapter(settings, "cpu", 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('adapter = "gymnasium:CartPole-v1"\nrobot = "go2"', "env.robot = "),
        ('adapter = "gymnasium:CartPole-v1"\n[env.rewards.alive]\nweight = 1.0', "bring their own"),
        ('adapter = "gymnasium:CartPole-v1"\nnan_guard = false', "have no such guard"),
        ('robot = "cartpole"\nadapter_options = { a = 1 }', "go with env.adapter, which is unset"),
        ("num_envs = 4", "env.robot: is missing; allowed: "),
    ],
)
def test_a_preset_has_either_a_robot_or_an_adapter(text, said):
    Path("wrong.toml").write_text("[env]\n" + text)
    with pytest.raises(PresetError) as caught:
        load("wrong.toml")
    assert said in str(caught.value)


def test_a_run_goes_on_by_the_name_of_its_worlds_and_says_what_is_lost():
    text = "gymnasium:CartPole-v1"
    small = ("trainer.num_steps_per_env=8", "trainer.num_mini_batches=2", "env.num_envs=4")
    session = new_session(with_env(text, *small, **{"--iterations": 2}), CPU)
    session.start()
    assert session.join(60)
    assert session.snapshot().failure is None, session.snapshot().failure
    assert session.run_dir.path.parent == Path("runs/CartPole-v1")
    flags = {"--env": text, "--iterations": 3}
    _, told = export(find_trained("CartPole-v1/latest"), "jit")
    assert told["adapter"] == text  # and nothing of joints, which only our own robots have
    again = resumed_session(base_for(text), "latest", CPU, (), flags)
    assert "worlds of gymnasium:CartPole-v1 cannot be saved: they begin anew" in again._notes
    again.start()
    assert again.join(60)
    assert again.snapshot().completed_iterations == 3
    assert again.snapshot().failure is None, again.snapshot().failure
