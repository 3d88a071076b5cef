"""Who trains: by the command line, by torchrun's variables, and by what a checkpoint holds."""

import pytest
import torch

from presets.build import resolve_device
from presets.loader import load
from presets.problems import PresetError
from presets.ranks import Ranks, joining, notes_on_ranks, notes_on_state, wanted_ranks
from trainer import checkpoint
from trainer.distributed import ProcessGroup
from trainer.ranks import Rank, rank_seed, threads_for

TORCHRUN = {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}


def test_one_process_is_alone_and_joins_nobody(tmp_path):
    ranks = wanted_ranks(None, {})
    assert not ranks.several
    preset = load("cartpole").preset
    assert joining(ranks, preset, "cpu", (), tmp_path / "log.txt") is None
    assert notes_on_ranks(ranks, preset, "cpu") == []
    assert not wanted_ranks(1, {}).several


def test_torchruns_variables_say_which_rank_this_is():
    ranks = wanted_ranks(None, TORCHRUN)
    assert ranks == Ranks(Rank(3, 4, 1, 2), by_torchrun=True)
    assert Rank.from_environment(ranks.own.variables) == ranks.own


@pytest.mark.parametrize(
    ("processes", "environment", "said"),
    [
        (0, {}, "must be 1 to 64"),
        (65, {}, "must be 1 to 64"),
        (2, TORCHRUN, "torchrun has started 4 processes already"),
        (None, {"WORLD_SIZE": "two"}, "WORLD_SIZE=two: must be a number"),
        (None, {"WORLD_SIZE": "2", "RANK": "2"}, "must be less than"),
    ],
)
def test_what_cannot_be_is_refused(processes, environment, said):
    with pytest.raises(PresetError, match=said):
        wanted_ranks(processes, environment)


def test_each_process_takes_the_gpu_of_its_local_rank(monkeypatch):
    asked = []
    monkeypatch.setattr("presets.build._why_no_gpu", lambda index: asked.append(index))
    assert resolve_device("cuda", wanted_ranks(None, TORCHRUN)).name == "cuda:1"
    assert resolve_device("auto", wanted_ranks(4, {})).name == "cuda:0"
    assert asked == [1, 3]  # the last one that is needed
    with pytest.raises(PresetError, match="use --device cuda, and CUDA_VISIBLE_DEVICES"):
        resolve_device("cuda:1", wanted_ranks(2, {}))


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_more_processes_than_gpus_are_refused(monkeypatch, device):
    monkeypatch.setattr(
        "presets.build._why_no_gpu", lambda index: f"there is no GPU {index}, the last one is 1"
    )
    with pytest.raises(PresetError, match="4 processes need a GPU each, but there is no GPU 3"):
        resolve_device(device, wanted_ranks(4, {}))


def test_the_cards_that_are_visible_are_named(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    preset = load("cartpole").preset
    assert notes_on_ranks(wanted_ranks(2, {}), preset, "cuda:0")[1:] == [
        "cuda:0 is GPU 2, cuda:1 is GPU 3 of this machine, by CUDA_VISIBLE_DEVICES"
    ]
    assert notes_on_ranks(wanted_ranks(None, {}), preset, "cuda:1") == [
        "cuda:1 is GPU 3 of this machine, by CUDA_VISIBLE_DEVICES"
    ]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert notes_on_ranks(wanted_ranks(None, {}), preset, "cuda:1") == []


def test_threads_are_a_share_of_the_cores_unless_a_person_chose(monkeypatch):
    monkeypatch.setattr("trainer.ranks.usable_cores", lambda: 16)
    assert threads_for(Rank(0, 2, 0, 2), {}) == 8
    assert threads_for(Rank(0, 2, 0, 2), {"OMP_NUM_THREADS": "3"}) == 3
    assert threads_for(Rank(0, 32, 0, 32), {}) == 1


@pytest.mark.parametrize(("chosen", "threads"), [(None, 8), ("3", 3)])
def test_a_rank_takes_its_share_of_16_cores_or_what_a_person_chose_and_says_so(
    monkeypatch, chosen, threads
):
    monkeypatch.setattr("trainer.ranks.usable_cores", lambda: 16)
    if chosen is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    before = torch.get_num_threads()
    try:
        ProcessGroup(Rank(0, 2, 0, 2), torch.device("cpu"), None, None)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    notes = notes_on_ranks(wanted_ranks(2, {}), load("cartpole").preset, "cpu")
    assert f"torch takes {threads} threads a process (OMP_NUM_THREADS)" in notes[-1]


def test_seeds_differ_between_ranks_and_rank_0_has_the_runs_own():
    seeds = [rank_seed(5, rank) for rank in range(4)]
    assert seeds[0] == 5
    assert len(set(seeds)) == 4
    assert seeds == [rank_seed(5, rank) for rank in range(4)]


STATE = {
    "actor": 1,
    "world_size": 2,
    "env": "worlds of rank 0",
    "other_ranks": [{"env": "worlds of rank 1"}],
}


def test_a_rank_goes_on_with_its_own_worlds():
    assert checkpoint.for_rank(STATE, 0, 2) == {
        "actor": 1,
        "world_size": 2,
        "env": "worlds of rank 0",
    }
    assert checkpoint.for_rank(STATE, 1, 2)["env"] == "worlds of rank 1"
    assert notes_on_state(wanted_ranks(2, {}), STATE) == []


@pytest.mark.parametrize("processes", [1, 3])
def test_another_number_of_processes_goes_on_in_new_worlds_and_says_so(processes):
    for rank in range(processes):
        state = checkpoint.for_rank(STATE, rank, processes)
        assert "env" not in state
        assert state["worlds_before"] == "worlds of rank 0"
    (note,) = notes_on_state(wanted_ranks(processes, {}), STATE)
    assert "trained by 2 processes so far" in note
    assert "the worlds begin anew" in note


def test_worlds_that_were_lost_with_their_rank_begin_anew_and_it_is_said():
    lost = {**STATE, "other_ranks": [None]}
    assert "env" not in checkpoint.for_rank(lost, 1, 2)
    assert checkpoint.for_rank(lost, 1, 2)["worlds_before"] == "worlds of rank 0"
    assert checkpoint.for_rank(lost, 0, 2)["env"] == "worlds of rank 0"
    assert notes_on_state(wanted_ranks(2, {}), lost) == [
        "the worlds of rank 1 were lost and begin anew"
    ]
