"""The page on a task of one's own does what it says: its very blocks are saved and run."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "new_task.md").read_text(encoding="utf-8")
PRESET = "presets/cartpole_place.toml"


def block(language):
    """The one code block of a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return found


@pytest.fixture
def folder(tmp_path):
    """A folder in which a person followed the page."""
    assert "Save this as `my_terms.py`" in PAGE
    assert f"Save this as `{PRESET}`" in PAGE
    (tmp_path / "presets").mkdir()
    (tmp_path / "my_terms.py").write_text(block("python"))
    (tmp_path / PRESET).write_text(block("toml"))
    return tmp_path


def call(folder, command):
    """Type a command in that folder."""
    program, *args = shlex.split(command)
    assert program == "ppo-tui"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "tui", *args],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_the_page_fits_on_a_page():
    assert len(PAGE.splitlines()) < 100


def test_its_commands_show_and_train_the_task(folder):
    show, run = block("sh").splitlines()
    shown = call(folder, show)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"^\[env\.rewards\.near_place\]$", shown.stdout, re.MULTILINE)
    assert re.search(r"^place = 1\.0 +# presets/cartpole_place\.toml$", shown.stdout, re.MULTILINE)
    assert not (folder / "runs").exists()

    trained = call(folder, run)
    assert trained.returncode == 0, trained.stderr
    (metrics,) = folder.glob("runs/cartpole_place/*/metrics.jsonl")
    rows = [json.loads(line) for line in metrics.open()]
    assert len(rows) == 2
    (command,) = re.findall(r"to go on +(ppo-tui run .*)", trained.stdout)
    again = call(folder, f"{command} --headless")  # as it stands there
    assert again.returncode == 0, again.stderr
    seen = [row["Episode_Reward/near_place"] for row in rows if "Episode_Reward/near_place" in row]
    assert seen
    assert all(0 < value < 2.0 for value in seen)


def test_what_it_says_about_mistakes_is_so(folder):
    show, _ = block("sh").splitlines()
    text = (folder / PRESET).read_text().replace("place = 1.0", "plase = 1.0")
    (folder / PRESET).write_text(text)
    shown = call(folder, show)
    assert shown.returncode == 2
    assert "'near_place' has no parameter 'plase'; did you mean place?" in shown.stderr


def test_without_terms_the_preset_alone_brings_no_code(folder):
    shown = call(folder, "ppo-tui show cartpole_place")
    assert shown.returncode == 2
    assert "'near_place' is not a reward term" in shown.stderr
    assert "one of your own needs --terms FILE" in shown.stderr
