"""The crash screen: where a run failed, whose number it was, and what to do."""

import math
import time

import pytest

from tests.trainer.test_culprit import CONFIG, Spoilt
from tests.tui.fake_session import FakeSession, run_info
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.stages import Stage
from trainer.telemetry import Culprit, EventLog, Failure, RunState, Snapshot
from tui.advice import experiment, where
from tui.app import DashboardApp
from tui.draw.spans import Charset
from tui.farewell import farewell
from tui.screens.failure import FailureView, command_to_go_on, failure_page

CULPRIT = Culprit("observations policy", Stage.OBSERVE, math.nan, 5, 77, 4, "base_ang_vel[1]")


def page(snapshot, events=None, width=100):
    return "\n".join(line.plain for line in failure_page(snapshot, events or EventLog(), width))


def failed(**changes):
    session = FakeSession()
    values = {"message": "ValueError: boom", "traceback": "Traceback\n  a\nValueError: boom"}
    failure = Failure(**{**values, "stage": Stage.SAMPLE, "iteration": 313, **changes})
    return session.publish(state=RunState.FAILED, failure=failure), session.events


def test_a_number_that_is_not_finite_is_shown_with_its_place_and_term():
    assert where(CULPRIT) == ("observations policy[t 5, world 77, column 4] = nan: base_ang_vel[1]")
    text = page(*failed(message="NonFiniteError: observations policy: 1 of 9", culprit=CULPRIT))
    assert "iteration 313, stage sample" in text
    assert "world 77" in text
    assert "stage observe" in text
    assert "model_300.pt" in text
    assert "a smaller env.physics_dt" in text
    assert "may fail again" in text
    assert "to go on         ppo-tui run go2_flat --resume 2026-09-21_14-13-20_fake" in text
    assert "exit code        1: the run failed" in text


def test_who_is_at_fault_and_where_was_looked_stand_on_the_page_and_in_the_farewell():
    sides = ("physics (qpos of 8 worlds; NaN guard on): finite", "learner (weights): non-finite: a")
    message = "NonFiniteError: returns: 1 of 9 (physics finite, learner non-finite)"
    snapshot, events = failed(message=message, looked_at=sides)
    text = page(snapshot, events)
    assert "looked at        physics (qpos of 8 worlds; NaN guard on): finite\n" in text
    for said in (text, farewell(snapshot, events, ended=True)):
        assert "physics finite, learner non-finite" in said
        assert all(side in said for side in sides)
        assert "lower the weights under env.rewards" in said


def test_a_long_message_leaves_what_is_saved_and_what_to_try_in_sight():
    lines = page(*failed(message="ValueError: " + "all of it " * 400), width=80).splitlines()
    assert "all of it stands at the end of the traceback below" in lines[5]
    assert lines[7].startswith("failed in")


def test_the_place_that_raised_stands_above_the_traceback():
    traceback = (
        'Traceback (most recent call last):\n  File "/a/loop.py", line 12, in iterate\n    step()\n'
        '  File "/b/my terms.py", line 3, in feet\n    return 1 / 0\nZeroDivisionError: division'
    )
    assert "raised at        /b/my terms.py:3, in feet\n" in page(*failed(traceback=traceback))
    assert "raised at" not in page(*failed())


@pytest.mark.parametrize("width", [24, 60, 80, 200])
def test_no_width_is_too_narrow_and_the_traceback_stays_whole(width):
    text = page(*failed(culprit=CULPRIT), width=width)
    assert "Traceback\n  a\nValueError: boom" in text


@pytest.mark.parametrize(
    ("message", "out_of_memory", "remedy", "code"),
    [
        ("rank 1 (process 7) ended with exit code 1", False, "--processes", "1: the run failed"),
        ("rank 1 is gone without a word: killed", False, "--resume", "1: the run failed"),
        ("OSError: [Errno 28] No space left", False, "disk space", "1: the run failed"),
        ("OSError: the last 3 iterations could not be saved", False, "disk", "1: the run failed"),
        ("out of memory with 8 worlds", True, "--num-envs", "3: out of memory"),
        ("PhysicsError: worlds of one state came apart", False, "--device cpu", "1: the run"),
        ("BrokenWorldError: world 3 went bad", False, "env.nan_guard = true", "1: the run"),
        ("KeyError: 'x'", False, "traceback below", "1: the run failed"),
    ],
)
def test_each_kind_of_failure_has_its_remedy_and_its_exit_code(
    message, out_of_memory, remedy, code
):
    text = page(*failed(message=message, out_of_memory=out_of_memory))
    assert remedy in text
    assert f"exit code        {code}" in text


def test_a_failure_before_the_worlds_exist_names_the_folder_and_how_to_try_again():
    failure = Failure("RuntimeError: no", "", None, 1, run_dir="runs/toy/a")
    snapshot = Snapshot(state=RunState.FAILED, failure=failure)
    text = page(snapshot)
    assert "failed in        before the first stage" in text
    assert "run directory    runs/toy/a" in text
    assert command_to_go_on(snapshot, EventLog()) == "ppo-tui run runs/toy/a/config.toml"
    own = Snapshot(state=RunState.FAILED, failure=failure, info=run_info(own_terms=("/me/t.py",)))
    assert command_to_go_on(own, EventLog()).endswith("config.toml --terms /me/t.py")
    assert "runs/toy/a" in farewell(snapshot, EventLog(), ended=True)


def test_a_term_that_the_run_has_is_put_to_the_test_and_no_other(tmp_path):
    (tmp_path / "config.toml").write_text(
        "[env.observations.policy.base_ang_vel]\n[env.rewards]\nalive = { weight = 1.0 }\n"
    )
    failure = Failure("", "", None, 1, culprit=CULPRIT, run_dir=str(tmp_path))
    assert experiment(failure, "walk") == (
        "ppo-tui run walk --set 'env.observations.policy.base_ang_vel.clip=[-100.0, 100.0]'"
    )
    reward = CULPRIT._replace(quantity="rewards", term="alive")
    failure = Failure("", "", None, 1, culprit=reward, run_dir=str(tmp_path))
    assert experiment(failure, "walk") == "ppo-tui run walk --set env.rewards.alive.weight=0"
    other = Failure("", "", None, 1, culprit=reward._replace(term="x"), run_dir=str(tmp_path))
    assert experiment(other, "walk") == ""


def test_the_log_is_shown_without_the_traceback_that_ends_it(tmp_path):
    trace = "Traceback\n  here\nValueError: boom"
    (tmp_path / "log.txt").write_text(f"compiled 3 kernels\n{trace}\n")
    failure = Failure("ValueError: boom", trace, None, 1, run_dir=str(tmp_path))
    text = page(Snapshot(state=RunState.FAILED, failure=failure))
    assert text.count("ValueError: boom") == 2  # the message, and the traceback's last line
    assert text.endswith("compiled 3 kernels")


@pytest.mark.parametrize("charset", [Charset.BRAILLE, Charset.ASCII])
async def test_a_real_run_that_meets_nan_ends_on_this_page_with_exit_code_1(tmp_path, charset):
    run_dir = RunDir.create(tmp_path / "run", "")
    app = DashboardApp(Session("toy", lambda: Spoilt(look=10), CONFIG, run_dir), fps=50)
    app.charset = charset
    async with app.run_test(size=(100, 30)) as pilot:
        deadline = time.monotonic() + 20
        while app.screen.view != "failure" and time.monotonic() < deadline:
            await pilot.pause(0.05)
        await pilot.pause()
        view = app.screen.query_one(FailureView)
        text = str(view.query_one("#failure-text").content)
        assert "observations policy[t 2, world 2, column 1] = nan: noise" in text
        assert "iteration 3" in text
        assert "model_2.pt" in text
        assert charset is Charset.BRAILLE or text.isascii()
        room = view.query_one("#failure-text").size.width
        above = text.split("traceback")[0].splitlines()
        wraps = [line for line in above if len(line) > room and " " in line.strip()]
        assert wraps == []  # what was folded once is folded again by nobody
        await pilot.press("end")
        await pilot.pause()
        assert view.scroll_y == view.max_scroll_y > 0
        await pilot.press("y", "home")
        assert app.clipboard == f"ppo-tui run {run_dir.config} --resume {run_dir.path}"
        await pilot.press("q")
    assert app.return_value == 1
