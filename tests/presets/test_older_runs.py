"""A run that the version before this one trained: cartpole, 16 worlds, 2 iterations."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from presets.build import Device
from presets.export import export
from presets.loader import load
from presets.older_keys import translated
from presets.problems import PresetError
from presets.resume import resumed_session
from presets.trained import find_trained, rebuild

OLDER = Path(__file__).parent / "older_run"
CPU = Device("cpu")
OBSERVATIONS = [[0.1, -0.2, 0.3, -0.4], [1.0, 2.0, -1.0, 0.0], [-3.0, 0.5, 4.0, -2.0]]
ACTIONS = [0.02913285791873932, 0.12140297889709473, -0.17872753739356995]
"""What the version that trained the policy makes of these."""


@pytest.fixture
def older(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(OLDER, tmp_path / "older")


def test_its_policy_acts_as_it_did(older):
    trained = find_trained(str(older))
    assert len(trained.notes) == 1
    assert "trainer.actor.min_std = 0.01 is from an older version" in trained.notes[0]
    assert trained.resolved.preset.trainer.actor.std_range == (0.01, 1e6)
    env, policy = rebuild(trained, CPU, 3)
    actions = policy({"policy": torch.tensor(OBSERVATIONS)})
    env.close()
    torch.testing.assert_close(actions.flatten(), torch.tensor(ACTIONS), rtol=0.0, atol=1e-6)


def test_it_is_exported(older):
    written, metadata = export(find_trained(str(older)), "jit", older / "policy.pt")
    actions = torch.jit.load(str(written.path))(torch.tensor(OBSERVATIONS))
    torch.testing.assert_close(actions.flatten(), torch.tensor(ACTIONS), rtol=0.0, atol=1e-6)
    assert metadata["iterations"] == 2


def test_it_goes_on_in_its_own_folder_with_all_it_knew(older):
    session = resumed_session("cartpole", str(older), CPU, flags={"--iterations": 3})
    session.start()
    assert session.join(60)
    assert session.snapshot().failure is None
    rows = [json.loads(line) for line in (older / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2, 3]
    assert rows[-1]["env_steps"] == 3 * 16 * 16
    assert (older / "checkpoints/model_3.pt").is_file()
    assert "min_std" not in (older / "config.toml").read_text()


def test_an_older_key_is_read_wherever_a_preset_may_have_it(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "cartpole"\n[cpu.trainer.actor]\nmin_std = 0.2\n')
    resolved = load(str(path))
    assert resolved.preset.trainer.actor.std_range == (0.2, 1e6)
    assert resolved.notes == (
        f"{path}: cpu.trainer.actor.min_std = 0.2 is from an older version, "
        "read as std_range = [0.2, 1000000.0]",
    )


@pytest.mark.parametrize(
    "actor",
    [{"min_std": 0.1, "std_range": [0.1, 1.0]}, {"min_std": "low"}, {"min_std": True}],
)
def test_what_cannot_be_translated_is_left_to_be_refused(actor):
    table = {"trainer": {"actor": actor}}
    assert translated(table, "x.toml") == (table, [])


def test_a_bad_older_value_is_refused_by_its_name_of_today(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "cartpole"\n[trainer.actor]\nmin_std = -1.0\n')
    with pytest.raises(PresetError, match=r"trainer\.actor\.std_range"):
        load(str(path))
