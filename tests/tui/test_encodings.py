"""Files as other systems' editors save them, given to the real program."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRESET = 'extends = "cartpole"\ndescription = "höher"\nenv.rewards.own = { weight = 1.0 }\n'
TERMS = """from sim.terms.registry import reward

@reward
def own(env):
    "Größe, [N]."
    return env.terminations.terminated.float()
"""


def show(folder, preset, terms):
    (folder / "mine.toml").write_bytes(preset)
    (folder / "mine.py").write_bytes(terms)
    command = [sys.executable, "-m", "tui", "show", "mine.toml", "--terms", "mine.py"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_a_byte_order_mark_is_passed_over(tmp_path):
    shown = show(tmp_path, PRESET.encode("utf-8-sig"), TERMS.encode("utf-8-sig"))
    assert (shown.returncode, shown.stderr) == (0, "")
    assert 'description = "höher"' in shown.stdout


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_refused_in_a_sentence(tmp_path, encoding):
    for file, preset, terms in (
        ("mine.toml", PRESET.encode(encoding), TERMS.encode()),
        ("mine.py", PRESET.encode(), TERMS.encode(encoding)),
    ):
        shown = show(tmp_path, preset, terms)
        assert (shown.returncode, shown.stdout) == (2, "")
        assert file in shown.stderr
        assert shown.stderr.endswith("; save it as UTF-8\n")
        assert len(shown.stderr.splitlines()) == 1
