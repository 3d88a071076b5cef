import threading
import time

import pytest

from trainer.stages import GateMode, Phase, Stage, StageGate, StopRequested

ITERATION = [
    *([Stage.OBSERVE, Stage.ACT_STEP, Stage.STORE] * 2),
    Stage.TARGETS,
    Stage.SAMPLE,
    Stage.OPTIMIZE,
    Stage.OPTIMIZE,
    Stage.FRESH,
]
PHASE_ENDS = {5, len(ITERATION) - 1}


class Loop:
    """Passes the boundaries of ITERATION over and over in a thread of its own."""

    def __init__(self) -> None:
        self.paused = threading.Semaphore(0)
        self.woken = 0
        self.gate = StageGate(on_pause=self.paused.release, on_wake=self._wake)
        self.passed: list[Stage] = []
        self.thread = threading.Thread(target=self._run)

    def _wake(self) -> None:
        self.woken += 1

    def _run(self) -> None:
        try:
            while True:
                for index, stage in enumerate(ITERATION):
                    self.passed.append(stage)
                    self.gate.passing(stage, phase_ends=index in PHASE_ENDS)
        except StopRequested:
            pass

    def wait_for_pause(self) -> Stage | None:
        assert self.paused.acquire(timeout=5)
        return self.gate.paused_behind


@pytest.fixture
def loop():
    loop = Loop()
    loop.gate.set_mode(GateMode.PAUSE)
    loop.thread.start()
    loop.wait_for_pause()
    yield loop
    loop.gate.stop()
    loop.thread.join(5)
    assert not loop.thread.is_alive()


def test_the_seven_stages_have_the_field_s_names_and_phases():
    assert [stage.label for stage in Stage] == [
        "observe",
        "act_step",
        "store",
        "targets",
        "sample",
        "optimize",
        "fresh",
    ]
    assert [stage.phase for stage in Stage] == [Phase.COLLECT] * 3 + [Phase.LEARN] * 4


def test_one_stage_at_a_time_visits_every_boundary_in_order(loop):
    seen = [loop.gate.paused_behind]
    for _ in range(2 * len(ITERATION) - 1):
        loop.gate.set_mode(GateMode.ONE_STAGE)
        seen.append(loop.wait_for_pause())
    assert seen == ITERATION * 2


def test_one_phase_runs_to_the_end_of_collect_then_of_learn(loop):
    loop.gate.set_mode(GateMode.ONE_PHASE)
    assert loop.wait_for_pause() is Stage.STORE
    assert loop.passed == ITERATION[:6]
    loop.gate.set_mode(GateMode.ONE_PHASE)
    assert loop.wait_for_pause() is Stage.FRESH
    assert loop.passed == ITERATION


def test_one_iteration_pauses_behind_fresh(loop):
    for count in (1, 2):
        loop.gate.set_mode(GateMode.ONE_ITERATION)
        assert loop.wait_for_pause() is Stage.FRESH
        assert loop.passed == ITERATION * count


def test_waking_a_paused_loop_calls_back_and_keeps_it_paused(loop):
    behind = loop.gate.paused_behind
    loop.gate.wake()
    deadline = time.monotonic() + 5
    while loop.woken == 0 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert loop.woken == 1
    assert loop.gate.paused_behind is behind
    assert loop.passed == [Stage.OBSERVE]


def test_stop_ends_a_paused_and_a_running_loop():
    for mode in (GateMode.PAUSE, GateMode.RUN):
        loop = Loop()
        loop.gate.set_mode(mode)
        loop.thread.start()
        time.sleep(0.01)
        loop.gate.stop()
        loop.thread.join(5)
        assert not loop.thread.is_alive()


def test_an_open_gate_costs_about_a_microsecond():
    gate = StageGate()
    started = time.perf_counter()
    for _ in range(100_000):
        gate.passing(Stage.OBSERVE, phase_ends=False)
    assert (time.perf_counter() - started) / 100_000 < 5e-6


def test_several_iterations_pause_behind_the_last_of_them(loop):
    loop.gate.set_mode(GateMode.ONE_ITERATION, iterations=3)
    assert "3 iterations" in loop.gate.pending or loop.gate.paused_behind
    assert loop.wait_for_pause() is Stage.FRESH
    assert loop.passed == ITERATION * 3


def test_a_mask_stops_what_runs_and_not_what_steps(loop):
    loop.gate.set_mask([Stage.SAMPLE])
    loop.gate.set_mode(GateMode.RUN)
    assert loop.wait_for_pause() is Stage.SAMPLE
    loop.gate.set_mode(GateMode.ONE_ITERATION)
    assert loop.wait_for_pause() is Stage.FRESH
    loop.gate.set_mode(GateMode.ONE_ITERATION)
    assert loop.wait_for_pause() is Stage.FRESH
    assert loop.passed == ITERATION * 2


def test_slow_motion_dwells_at_every_boundary_and_wakes_to_what_is_asked():
    loop, dwelt = Loop(), []
    loop.gate = StageGate(loop.paused.release, loop._wake, on_dwell=lambda: dwelt.append(1))
    loop.gate.set_dwell(60.0)
    loop.thread.start()
    deadline = time.monotonic() + 5
    while not dwelt and time.monotonic() < deadline:
        time.sleep(0.001)
    loop.gate.wake()
    while not loop.woken and time.monotonic() < deadline:
        time.sleep(0.001)
    assert (loop.woken, loop.passed) == (1, [Stage.OBSERVE])
    loop.gate.set_mode(GateMode.ONE_STAGE)  # ends the dwell; the next stage closes
    assert loop.wait_for_pause() is Stage.ACT_STEP
    loop.gate.set_mode(GateMode.RUN)
    while len(dwelt) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    loop.gate.set_mode(GateMode.PAUSE)  # closes here, at once
    assert loop.wait_for_pause() is Stage.STORE
    loop.gate.stop()
    loop.thread.join(5)
    assert not loop.thread.is_alive()
