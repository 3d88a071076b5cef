"""How many cores there are for a training: affinity, quota, and a share of them."""

import os

import pytest
import torch

from trainer import cores, threads
from trainer.cores import cgroup_cores, usable_cores
from trainer.ranks import share_of_cores


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "nonsense"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "0\n"}, None),
    ],
)
def test_a_container_s_quota_is_read_in_both_versions_of_control_groups(tmp_path, files, quota):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cgroup_cores(tmp_path) == quota


@pytest.mark.parametrize(
    ("quota", "usable"), [(None, 64), (1.5, 2), (0.2, 1), (8.0, 8), (99.0, 64)]
)
def test_no_more_cores_are_used_than_the_quota_pays_for(monkeypatch, quota, usable):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    monkeypatch.setattr(cores, "cgroup_cores", lambda: quota)
    assert usable_cores() == usable


@pytest.mark.parametrize(
    ("environment", "share"),
    [
        ({}, 16),
        ({"LOCAL_WORLD_SIZE": "3"}, 5),
        ({"LOCAL_WORLD_SIZE": "40"}, 1),
        ({"LOCAL_WORLD_SIZE": "0"}, 16),
        ({"LOCAL_WORLD_SIZE": "many"}, 16),
    ],
)
def test_processes_that_train_together_share_the_cores(monkeypatch, environment, share):
    monkeypatch.setattr("trainer.ranks.usable_cores", lambda: 16)
    assert share_of_cores(environment) == share


@pytest.mark.parametrize(("chosen", "left"), [(None, 3), ("6", 8)])
def test_torch_takes_no_more_threads_than_cores_unless_a_person_chose(monkeypatch, chosen, left):
    monkeypatch.setattr(threads, "usable_cores", lambda: 3)
    if chosen is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    try:
        threads.keep_torch_to_its_cores()
        assert torch.get_num_threads() == left
    finally:
        torch.set_num_threads(before)
