import pytest

from trainer.telemetry import Command


@pytest.fixture
def sessions():
    """Sessions that a test has started; they are stopped when it has ended."""
    started = []
    yield started
    for session in started:
        session.command(Command.STOP_NOW)
        assert session.join(10)
