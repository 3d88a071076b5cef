"""Words that are no command: what they may have meant."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tui.commands.mistyped import command_meant

ROOT = Path(__file__).parents[2]
COMMANDS = ["run", "presets", "show", "watch", "play", "export", "import", "doctor", "runs"]
PRESETS = ["cartpole", "go2_flat", "train_me"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("train go2_flat", "run go2_flat"),
        ("train --headless", "run PRESET"),
        ("TRAIN", "run PRESET"),
        ("trian go2_flat --seed 1", "run go2_flat --seed 1"),
        ("resume latest", "run PRESET --resume latest"),
        ("resume", "run PRESET --resume RUN"),
        ("eval latest", "play latest"),
        ("evalute latest", "play latest"),
        ("list", "presets, or ppo-tui runs"),
        ("compare a b", "runs compare a b"),
        ("load 'a b.pt'", "import 'a b.pt' --preset PRESET"),
        ("help", "--help"),
        ("go2_flat", "run go2_flat"),
        ("go2_flat --num-envs 8", "run go2_flat --num-envs 8"),
        ("go2_flta", "run go2_flat"),
        ("train_me", "run train_me"),
        ("my/own.toml", "run my/own.toml"),
        ("exprot latest", "export latest"),
        ("Run go2_flat", "run go2_flat"),
        ("zzzzz", ""),
    ],
)
def test_what_a_word_may_have_meant(typed, meant):
    assert command_meant(shlex.split(typed), COMMANDS, PRESETS) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("train go2_flat", "ppo-tui run go2_flat"),
        ("trian", "ppo-tui run PRESET"),
        ("go2_flat", "ppo-tui run go2_flat"),
        ("resume", "ppo-tui run PRESET --resume RUN"),
        ("list", "ppo-tui presets"),
    ],
)
def test_the_program_says_so_in_a_few_lines(tmp_path, typed, meant):
    said = subprocess.run(
        [sys.executable, "-m", "tui", *typed.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
    )
    assert (said.returncode, said.stdout) == (2, "")
    assert f'no command "{typed.split()[0]}"; did you mean {meant}' in said.stderr
    assert len(said.stderr.splitlines()) < 10
    assert not list(tmp_path.iterdir())
