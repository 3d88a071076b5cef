import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from presets.build import Device, new_session
from presets.loader import load
from presets.problems import PresetError
from presets.resume import resumed_session
from tests.presets.tiny import TINY, write
from trainer import checkpoint
from trainer.rundir import process_start

CPU = Device("cpu")
RUN = Path("runs/tiny/2026-01-01_00-00-00")
STAGED = """
extends = "tiny"
trainer.actor.obs_normalization = true
env.curriculum.late = { term = "modify_reward_weight", reward = "alive", \
weight = 5.0, num_steps = 20 }
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with presets and a run of four iterations, some of whose values were overridden."""
    folder = tmp_path_factory.mktemp("trained")
    write(folder, tiny=TINY, staged=STAGED, other=TINY.replace("num_envs = 16", "num_envs = 32"))
    before = Path.cwd()
    os.chdir(folder)
    try:
        train("tiny", RUN, "env.num_envs=8", "trainer.gamma=0.9")
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(autouse=True)
def _a_copy_to_go_on_in(trained, tmp_path, monkeypatch):
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def train(preset, folder, *settings, iterations=4):
    flags = {"--iterations": iterations, "--seed": 3}
    return finish(new_session(load(preset, settings, flags=flags), CPU, Path(folder)))


def finish(session):
    session.start()
    assert session.join(60)
    assert session.snapshot().failure is None, session.snapshot().failure
    return session


def go_on(run="latest", preset="tiny", settings=(), iterations=6, device=CPU, **flags):
    return resumed_session(preset, run, device, settings, {"--iterations": iterations, **flags})


def refusal(*args, **kwargs):
    """Why it is refused; nothing on disk may have changed."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    with pytest.raises(PresetError) as caught:
        go_on(*args, **kwargs)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    return caught.value.messages


def saved(session):
    return checkpoint.saved_iterations(session.run_dir.checkpoints)


@pytest.mark.parametrize("run", ["latest", RUN.name, str(RUN)])
def test_a_run_is_found_and_keeps_the_settings_it_was_trained_with(run):
    Path("presets/tiny.toml").write_text(TINY.replace("scale = 100.0", "scale = 1.0"))
    session = finish(go_on(run))
    assert session.run_dir.path == RUN
    assert saved(session) == [2, 4, 6]
    config = tomllib.loads((RUN / "config.toml").read_text())
    assert (config["env"]["num_envs"], config["trainer"]["gamma"]) == (8, 0.9)
    assert config["env"]["actions"]["joint_effort"]["scale"] == 100.0
    assert config["trainer"]["num_iterations"] == 6
    assert len(list(session.run_dir.read_metrics())) == 6


@pytest.mark.parametrize(("before", "weight"), [(3, 5.0), (2, 1.0)])
def test_real_worlds_go_on_bit_for_bit_and_a_reward_weight_changes_once(before, weight):
    straight = train("staged", "straight", iterations=6)
    train("staged", "parts", iterations=before)
    state = checkpoint.load(Path(f"parts/checkpoints/model_{before}.pt"))
    assert state["env"]["common_step_counter"] == 8 * before
    assert state["env"]["rewards"]["weights"]["alive"] == weight  # late behind 20 env steps
    parts = finish(go_on("parts", "staged"))
    for session in (straight, parts):
        assert session._trainer.env.reward_terms["alive"] == 5.0
    ends = [
        checkpoint.load(Path(name) / "checkpoints" / "model_6.pt") for name in ("straight", "parts")
    ]
    flat = [torch.cat(list(_tensors(end))) for end in ends]
    assert flat[0].numel() > 500
    assert torch.equal(*flat)
    assert [end["env"]["common_step_counter"] for end in ends] == [48, 48]
    assert _untimed("straight") == _untimed("parts")


def _tensors(state):
    if isinstance(state, torch.Tensor):
        yield state.flatten().double()
    elif isinstance(state, dict | list):
        for entry in state.values() if isinstance(state, dict) else state:
            yield from _tensors(entry)


def _untimed(run):
    lines = [json.loads(line) for line in (Path(run) / "metrics.jsonl").open()]
    timed = ("elapsed", "Perf/")
    return [{k: v for k, v in line.items() if not k.startswith(timed)} for line in lines]


def test_damaged_checkpoints_are_passed_over_and_named():
    for name, data in (("model_6.pt", b""), ("model_4.pt", None)):
        path = RUN / "checkpoints" / name
        path.write_bytes(path.read_bytes()[:2000] if data is None else data)
    session = go_on()
    empty, cut = session._notes
    assert "model_6.pt: not readable" in empty
    assert "model_4.pt: not readable" in cut
    assert session.snapshot().completed_iterations == 2
    assert [row.iteration for row in session.run_dir.read_metrics()] == [1, 2]
    assert saved(finish(session)) == [2, 4, 6]
    assert checkpoint.newest_readable(RUN / "checkpoints").unreadable == ()


def test_where_no_checkpoint_is_readable_all_are_named():
    for number in (2, 4):
        (RUN / "checkpoints" / f"model_{number}.pt").write_bytes(b"PK")
    four, two, none = refusal(RUN.name)
    assert "model_4.pt: not readable" in four
    assert "model_2.pt: not readable" in two
    assert none == f"{RUN}: has no readable checkpoint"
    assert refusal()[-1] == "--resume latest: no run in runs/tiny has a readable checkpoint"


def test_latest_passes_over_newer_runs_without_a_checkpoint():
    newer = Path("runs/tiny/2026-02-02_00-00-00")
    shutil.copytree(RUN, newer)
    shutil.rmtree(newer / "checkpoints")
    session = go_on()
    assert session.run_dir.path == RUN
    assert f"{newer}: has no checkpoint yet" in session._notes


def test_a_run_that_is_being_trained_is_left_alone():
    (RUN / "status.json").write_text(
        json.dumps({"state": "running", "pid": 1, "pid_started": process_start(1)})
    )
    for run in ("latest", RUN.name):
        assert refusal(run) == [
            f"{RUN}: is being trained right now by process 1; stop that one first"
        ]


def test_another_preset_is_refused_with_the_keys_that_differ():
    first, *keys = refusal(str(RUN), "other")
    assert first == f"{RUN}: is a run of tiny, not of other; what differs:"
    assert "  env.num_envs: 8 in the run, 32 in other" in keys
    assert "  trainer.gamma: 0.9 in the run, 0.99 in other" in keys


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"settings": ["trainer.gamma=0.5"]}, "--set trainer.gamma=0.5: the run was trained with"),
        ({"--num-envs": 4}, "--num-envs 4: the run was trained with 8; only --device, "),
        ({"--seed": 4}, "--seed 4: the run was trained with 3; "),
        ({"settings": ["env.rewards.alive=false"]}, "env.rewards.alive"),
        ({"settings": ["trainer.gama=0.5"]}, "did you mean trainer.gamma?"),
        ({"settings": ["trainer.keep_checkpoints=0"]}, "or at least 1, not 0"),
    ],
)
def test_settings_that_conflict_are_refused(change, said):
    assert said in refusal(**change)[0]


def test_what_changes_nothing_that_is_learnt_may_change():
    settings = ["trainer.save_interval=1", "trainer.keep_checkpoints=1", "trainer.gamma=0.9"]
    session = finish(go_on(settings=settings))
    assert set(saved(session)) >= {4, 6}
    assert 5 not in saved(session) or session._keeper.best.iteration == 5
    config = tomllib.loads((RUN / "config.toml").read_text())["trainer"]
    assert (config["save_interval"], config["keep_checkpoints"]) == (1, 1)


def test_a_run_of_a_gpu_goes_on_on_the_cpu_with_new_worlds_and_says_so():
    path = RUN / "checkpoints/model_4.pt"
    state = checkpoint.load(path)
    gpu = {"physics": {"state": {"qpos": torch.zeros(8, 2)}, "fields": {}}}
    state |= {"device": "cuda:1", "generator": torch.zeros(16, dtype=torch.uint8)}
    state["env"]["scene"] = gpu
    checkpoint.save(path, state)
    session = go_on()
    assert "the worlds begin anew on cpu, as hard as they were; " in session._notes[0]
    finish(session)
    end = checkpoint.load(RUN / "checkpoints/model_6.pt")
    steps = [int(s["optimizer"]["state"][0]["step"]) for s in (state, end)]
    assert steps == [4 * 20, 6 * 20]
    assert end["device"] == "cpu"
    assert [row.iteration for row in session.run_dir.read_metrics()] == [1, 2, 3, 4, 5, 6]


def test_a_staged_curriculum_goes_on_where_worlds_of_another_device_begin_anew():
    train("staged", "run", iterations=3)
    path = Path("run/checkpoints/model_3.pt")
    state = checkpoint.load(path)
    state |= {"device": "cuda:1", "generator": torch.zeros(16, dtype=torch.uint8)}
    state["env"]["scene"] = {"physics": {"state": {"qpos": torch.zeros(8, 2)}, "fields": {}}}
    checkpoint.save(path, state)
    session = go_on("run", "staged", iterations=4)
    weights = []
    build = session._build_env

    def watched():
        env = build()
        step = env.step
        env.step = lambda actions: weights.append(env.reward_terms["alive"]) or step(actions)
        return env

    session._build_env = watched
    finish(session)
    assert weights[0] == 5.0
    end = checkpoint.load(Path("run/checkpoints/model_4.pt"))
    assert end["env"]["common_step_counter"] == 32


def test_a_run_that_is_done_says_how_to_train_on():
    for iterations in (None, 3):
        (message,) = refusal(iterations=iterations)
        assert message.startswith(f"{RUN}: has done 4 of {iterations or 4} iterations; ")
        assert message.endswith("--iterations 8")


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("2026-01-01_00-00-01", f'no run "2026-01-01_00-00-01"; did you mean {RUN.name}?'),
        ("zzz", f"; the newest: {RUN.name}"),
        ("", 'no run ""'),
        ("presets", "presets: holds no run, there is no config.toml"),
        ("presets/tiny.toml", "is a file; give the run's folder"),
    ],
)
def test_a_run_that_is_not_there_is_refused_with_the_nearest(run, said):
    assert said in refusal(run)[0]


def test_a_preset_without_runs_and_one_that_does_not_exist_are_refused():
    assert "no run in runs/other has" in refusal(preset="other")[0]
    assert "runs/other holds none" in refusal("zzz", "other")[0]
    assert refusal(preset="tinyy")[0] == 'no preset "tinyy"; did you mean tiny?'


def test_a_checkpoint_of_a_newer_program_is_refused():
    torch.save({"schema_version": 9}, RUN / "checkpoints" / "model_9.pt")
    for run in ("latest", RUN.name):
        (message,) = refusal(run)
        assert "made by a newer version of this program, with checkpoint schema 9" in message


def test_of_two_that_go_on_at_once_one_is_refused():
    session = go_on()  # not started yet: nothing on disk says who trains
    command = [sys.executable, "-m", "tui", "run", "tiny", "--resume", str(RUN), "--headless"]
    done = subprocess.run(
        [*command, "--iterations", "6", "--device", "cpu"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"{RUN}: is being trained right now by process {os.getpid()}" in done.stderr
    assert saved(finish(session)) == [2, 4, 6]
    assert [row.iteration for row in session.run_dir.read_metrics()] == [1, 2, 3, 4, 5, 6]


def test_the_folder_is_taken_from_the_first_moment(monkeypatch):
    def wait(*args):
        refused.append(refusal())
        raise RuntimeError("seen enough")

    refused = []
    session = go_on()
    monkeypatch.setattr("presets.resume.build_env", wait)
    session.start()
    assert session.join(60)
    assert "is being trained right now by process" in refused[0][0]
