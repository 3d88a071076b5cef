"""What happened before a run was gone on with stays known."""

from presets.build import Device, new_session
from presets.loader import load
from presets.resume import resumed_session
from trainer.telemetry import RunState


def trained(session):
    session.start()
    assert session.join(60)
    assert session.snapshot().state is RunState.FINISHED
    return session


def test_the_events_before_a_resume_stay_and_are_written_once(tmp_path):
    resolved = load("tiny", flags={"--seed": 1, "--iterations": 2})
    first = trained(new_session(resolved, Device("cpu"), tmp_path / "run"))
    _, before = first.events.since(0)
    assert {"start", "checkpoint", "end"} <= {event.kind for event in before}

    second = resumed_session("tiny", str(tmp_path / "run"), Device("cpu"), (), {"--iterations": 3})
    number, known = second.events.since(0)
    assert known == before
    assert number == len(before)
    trained(second)
    _, after = second.events.since(0)
    assert after[: len(before)] == before
    assert after == second.run_dir.read_events()
