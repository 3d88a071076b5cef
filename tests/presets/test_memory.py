"""What a preset needs at least is known before anything is allocated."""

import pytest
import torch

from presets import memory
from presets.build import Device, new_session
from presets.loader import load
from trainer.rollout import Rollout


def test_a_rollout_of_4096_worlds_takes_the_bytes_that_paper_and_pencil_give():
    # 24 x 4096 x (4 (235 + 235 + 3 x 12 + 5) + 1)
    assert memory.rollout_bytes(24, 4096, (235, 235), 12) == 201_031_680


def test_the_estimate_is_what_the_tensors_take():
    rollout = Rollout(5, 7, {"policy": 11, "critic": 3}, 2, "cpu")
    tensors = [v for v in vars(rollout).values() if isinstance(v, torch.Tensor)]
    tensors += rollout.observations.values()
    taken = sum(tensor.nbytes for tensor in tensors)
    assert memory.rollout_bytes(5, 7, (11, 3), 2) == taken


def test_too_many_worlds_are_refused_with_a_number_that_fits_and_nothing_is_made(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("trainer.memory.available", lambda: 2 * 10**9)
    resolved = load("go2_flat", ("env.num_envs=65536",), "cpu")
    with pytest.raises(memory.OutOfMemoryError) as caught:
        new_session(resolved, Device("cpu"), tmp_path / "run")
    (message,) = caught.value.messages
    assert "65,536 worlds need" in message
    assert "2 GB are free on cpu" in message
    assert not (tmp_path / "run").exists()
    fewer = int(message.rpartition("--num-envs ")[2])
    assert fewer & (fewer - 1) == 0
    fitting = load("go2_flat", (f"env.num_envs={fewer}",), "cpu").preset
    assert sum(memory.least_bytes(fitting).values()) <= 2 * 10**9
    assert sum(memory.least_bytes(fitting).values()) > 2 * 10**9 / 2.5  # and not far too few


def test_an_observation_too_wide_for_any_number_of_worlds_is_told(monkeypatch):
    monkeypatch.setattr("trainer.memory.available", lambda: 8 * 10**9)
    ray_a_millimetre = "env.observations.policy.height_scan.resolution=0.001"
    preset = load("go2_rough", (ray_a_millimetre, "env.num_envs=4"), "cpu").preset
    with pytest.raises(memory.OutOfMemoryError) as caught:
        memory.require_memory(preset, "cpu")
    # 48 numbers and 1601 x 1001 rays, into 512 units of two networks
    columns = 48 + 1601 * 1001
    assert memory.least_bytes(preset)["networks"] == 8 * 2 * 512 * columns
    assert f"has up to {columns:,} columns" in caught.value.messages[0]
    assert "--num-envs" not in caught.value.messages[0]


def test_processes_on_one_machine_share_its_memory(monkeypatch):
    preset = load("go2_flat", ("env.num_envs=4096",), "cpu").preset
    monkeypatch.setattr(
        "trainer.memory.available", lambda: sum(memory.least_bytes(preset).values())
    )
    memory.require_memory(preset, "cpu")
    with pytest.raises(memory.OutOfMemoryError, match="2 x 4,096 worlds"):
        memory.require_memory(preset, "cpu", processes=2)
