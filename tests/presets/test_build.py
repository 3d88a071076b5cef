import re
import sys
import types

import pytest

import sim.env
import sim.physics.cpu
import trainer.env
from presets import build
from presets.build import Device, build_env, new_session, resolve_device
from presets.loader import load
from presets.problems import PresetError


def set_machine(monkeypatch, driver=True, gpus=1, cuda="13.0", visible=None):
    """Pretend to be on a machine with these GPUs and this torch."""
    monkeypatch.setattr(build, "_has_driver", lambda: driver)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    torch = types.ModuleType("torch")
    torch.version = types.SimpleNamespace(cuda=cuda)
    torch.cuda = types.SimpleNamespace(is_available=lambda: gpus > 0, device_count=lambda: gpus)
    monkeypatch.setitem(sys.modules, "torch", torch)


REASONS = [
    ({"driver": False}, "no NVIDIA driver"),
    ({"visible": ""}, "CUDA_VISIBLE_DEVICES hides every GPU"),
    ({"visible": "-1"}, "CUDA_VISIBLE_DEVICES hides every GPU"),
    ({"cuda": None}, "the installed torch is a CPU build"),
    ({"gpus": 0}, "torch finds no GPU it can use"),
]


@pytest.mark.parametrize(("machine", "reason"), REASONS)
def test_cuda_where_it_cannot_be_used_is_refused_with_the_reason(monkeypatch, machine, reason):
    set_machine(monkeypatch, **machine)
    for choice in ("cuda", "cuda:0"):
        with pytest.raises(PresetError) as caught:
            resolve_device(choice)
        assert caught.value.messages == [f"--device {choice}: {reason}; use --device cpu"]


@pytest.mark.parametrize(("machine", "reason"), REASONS)
def test_auto_takes_the_cpu_then_and_says_why(monkeypatch, machine, reason):
    set_machine(monkeypatch, **machine)
    assert resolve_device("auto") == Device("cpu", f"no GPU ({reason})")


@pytest.mark.parametrize(
    ("choice", "meant"), [("gpu", "cuda"), ("CPU", "cpu"), ("cuda:", "cuda:i"), ("GPU:1", "cuda:i")]
)
def test_a_device_that_there_is_not_is_refused_with_the_nearest(choice, meant):
    with pytest.raises(PresetError, match=re.escape(f"did you mean {meant}?")):
        resolve_device(choice)


def test_a_gpu_that_is_there_is_taken(monkeypatch):
    set_machine(monkeypatch, gpus=2)
    assert resolve_device("auto") == Device("cuda:0")
    assert resolve_device("cuda") == Device("cuda:0")
    assert resolve_device("cuda:1").kind == "cuda"
    with pytest.raises(PresetError, match="there is no GPU 2, the last one is 1"):
        resolve_device("cuda:2")


def test_the_cpu_asks_nobody(monkeypatch):
    monkeypatch.setattr(build, "_why_no_gpu", None)
    assert resolve_device("cpu") == Device("cpu")


@pytest.mark.parametrize("choice", ["gpu", "cuda:", "cuda:x", "CPU", "", "auto:1", "cuda:-1"])
def test_any_other_device_is_refused(choice):
    with pytest.raises(PresetError, match=f"--device {choice}: allowed: auto, cpu, cuda, cuda:i"):
        resolve_device(choice)


def test_a_session_knows_its_seed_folder_and_notes(tmp_path):
    resolved = load("tiny")
    session = new_session(resolved, Device("cpu", "no GPU (none)"), tmp_path / "run")
    consequence, drawn = session._notes
    assert consequence == "no GPU (none): 16 worlds; tiny runs on the CPU"
    seed = int(re.fullmatch(r"seed (\d+) was drawn; .*", drawn)[1])
    written = load(str(tmp_path / "run" / "config.toml"))
    assert written.preset.trainer.seed == seed
    assert written.preset.env == resolved.preset.env


def test_a_given_seed_is_kept_and_a_gpu_run_promises_no_bits(tmp_path):
    resolved = load("tiny", flags={"--seed": 3})
    session = new_session(resolved, Device("cuda:0"), tmp_path / "run")
    assert session._notes == (
        "a GPU repeats no run bit by bit; two of one seed agree in statistics",
    )
    assert load(str(tmp_path / "run" / "config.toml")).preset == resolved.preset


def test_a_folder_that_holds_a_run_is_refused(tmp_path):
    resolved = load("tiny")
    new_session(resolved, Device("cpu"), tmp_path / "run")
    with pytest.raises(PresetError, match="another run"):
        new_session(resolved, Device("cpu"), tmp_path / "run")


@pytest.mark.parametrize(("chosen", "threads"), [(0, 7), (3, 3)])
def test_the_physics_has_a_thread_a_core_or_as_many_as_a_person_chose(monkeypatch, chosen, threads):
    taken = []

    class Physics(sim.physics.cpu.CpuPhysics):
        def __init__(self, model, num_worlds, num_threads):
            taken.append(num_threads)
            super().__init__(model, num_worlds, num_threads)

    monkeypatch.setattr(sim.physics.cpu, "CpuPhysics", Physics)
    monkeypatch.setattr(build, "share_of_cores", lambda: 7)
    preset = load("tiny", [f"env.num_threads={chosen}"], flags={"--seed": 3}).preset
    build_env(preset, Device("cpu")).close()
    assert taken == [threads]


def test_the_worlds_fit_what_the_trainer_asks_for():
    preset = load("tiny", flags={"--seed": 3}).preset
    env = build_env(preset, Device("cpu"))
    try:
        asked = trainer.env.Env.__annotations__.keys()
        assert [name for name in asked if not hasattr(env, name)] == []
        assert sim.env.Feedback._fields == trainer.env.Feedback._fields
        assert (env.num_envs, env.num_actions) == (16, 1)
        assert env.observe()["policy"].shape == (16, 4)
    finally:
        env.close()
    with pytest.raises(ValueError, match="seed"):
        build_env(load("tiny").preset, Device("cpu"))
