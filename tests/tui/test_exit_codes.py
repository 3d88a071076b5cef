"""A run without memory ends with code 3, wherever memory ran out, and keeps what it has learnt."""

import io

import torch

from tests.trainer.toy_env import ToyEnv
from tests.tui.test_headless import CONFIG
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.stages import Stage
from tui.headless import run_headless


def run(path, build_env, capsys):
    session = Session("toy", build_env, CONFIG, RunDir.create(path, ""), num_envs=4096)
    out = io.StringIO()
    code = run_headless(session, out)
    return code, session.snapshot().failure, out.getvalue() + capsys.readouterr().err


def test_memory_that_runs_out_while_worlds_are_built(tmp_path, capsys):
    def build_env():
        torch.empty(2**48)

    code, failure, text = run(tmp_path / "run", build_env, capsys)
    assert code == 3
    assert failure.stage is None
    assert "out of memory with 4,096 worlds: asked for 1,126 TB" in text
    assert "what to try    fewer worlds: --num-envs 1\n" in text
    assert "Traceback" not in text


def test_memory_that_runs_out_in_the_middle_of_an_update(tmp_path, capsys, monkeypatch):
    from trainer.update import Learner

    step, calls = Learner.optimize, []

    def optimize(learner, batch, **options):
        calls.append(1)
        if len(calls) == 5:
            raise torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of "
                "8.00 GiB of which 1.00 GiB is free."
            )
        return step(learner, batch, **options)

    monkeypatch.setattr(Learner, "optimize", optimize)
    code, failure, text = run(tmp_path / "run", ToyEnv, capsys)
    assert code == 3
    assert failure.stage is Stage.OPTIMIZE
    assert "out of memory with 4,096 worlds: asked for 3.22 GB, 1.07 GB free" in text
    assert "failed in      iteration 5, stage optimize" in text
    assert "what to try    fewer worlds: --num-envs 1024\n" in text
    assert (tmp_path / "run" / "checkpoints" / "model_4.pt").exists()


def test_another_failure_ends_with_code_1(tmp_path, capsys):
    def build_env():
        raise ValueError("no such robot")

    assert run(tmp_path / "run", build_env, capsys)[0] == 1
