"""Own terms from a Python file: read before a run, never run by reading."""

from pathlib import Path

import pytest

from presets.build import Device, build_env
from presets.loader import load
from presets.problems import PresetError

TERMS = '''
from sim.terms.registry import reward

open("was_run", "w").close()

@reward
def twice(env, factor: float):
    """Two, times a factor, [N]."""
    return env.terminations.terminated.float() * 0 + 2 * factor
'''
REWARD = ["env.rewards.twice.weight=0.5", "env.rewards.twice.factor=3.0", "env.num_envs=4"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(text, name="mine.py"):
    path = Path(name)
    path.write_text(text)
    return path


def test_a_preset_may_name_an_own_term_and_reading_it_runs_nothing():
    path = write(TERMS)
    resolved = load("cartpole", REWARD, own_terms=[path])
    assert resolved.own_terms == (path.absolute(),)
    assert not Path("was_run").exists()
    with pytest.raises(PresetError, match="'twice' is not a reward term"):
        load("cartpole", REWARD)


def test_the_worlds_are_built_with_it():
    resolved = load("cartpole", [*REWARD, "trainer.seed=1"], own_terms=[write(TERMS)])
    env = build_env(resolved.preset, Device("cpu"), own_terms=resolved.own_terms)
    assert env.reward_terms["twice"] == 0.5
    assert env.rewards.terms["twice"](env).tolist() == [6.0] * 4
    env.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def reward(:\n", "mine.py: line 1: not Python: "),
        ("x = 1\n", "mine.py: defines no term; a term stands under one of @action, "),
        ("x = '\0'\n", "mine.py: holds null bytes, as UTF-16 text does; save it as UTF-8"),
        (None, "mine.py: cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_of_no_use_is_named(text, said):
    if text is not None:
        write(text)
    with pytest.raises(PresetError) as caught:
        load("cartpole", own_terms=[Path("mine.py")])
    assert said in caught.value.messages[0]
    assert caught.value.messages[0].startswith("--terms ")


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("latin-1", "mine.py: line 8: is not UTF-8 text"), ("utf-16", "mine.py: is UTF-16 text")],
)
def test_a_file_in_another_encoding_is_refused(encoding, said):
    Path("mine.py").write_bytes(TERMS.replace("Two", "Zw\xf6lf").encode(encoding))
    with pytest.raises(PresetError) as caught:
        load("cartpole", own_terms=[Path("mine.py")])
    assert said in caught.value.messages[0]


def test_a_byte_order_mark_is_no_part_of_a_term_file():
    Path("mine.py").write_bytes(b"\xef\xbb\xbf" + TERMS.encode())
    resolved = load("cartpole", [*REWARD, "trainer.seed=1"], own_terms=[Path("mine.py")])
    env = build_env(resolved.preset, Device("cpu"), own_terms=resolved.own_terms)
    assert env.rewards.terms["twice"](env).tolist() == [6.0] * 4
    env.close()


def test_a_wrong_parameter_of_an_own_term_is_named_with_the_nearest():
    with pytest.raises(PresetError, match=r"no parameter 'facto'; did you mean factor\?"):
        load("cartpole", [*REWARD, "env.rewards.twice.facto=1.0"], own_terms=[write(TERMS)])


def test_a_file_that_cannot_be_run_is_named_by_the_error():
    text = TERMS.replace('open("was_run", "w").close()', "import no_such_module")
    resolved = load("cartpole", [*REWARD, "trainer.seed=1"], own_terms=[write(text)])
    with pytest.raises(ValueError, match=r"own terms .*mine\.py: ModuleNotFoundError: .*no_such"):
        build_env(resolved.preset, Device("cpu"), own_terms=resolved.own_terms)
