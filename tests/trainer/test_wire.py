"""Plain data as bytes and back."""

import math
import struct
from dataclasses import fields
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.fake_session import FakeSession
from trainer.stages import Stage
from trainer.telemetry import Command, Event, Position, RunState, UpdateView
from trainer.wire import WireError, from_json, pack, to_json, unpack

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def travelled(value):
    (back,) = unpack(bytearray(pack(value)))
    return back


def same(a, b):
    """Whether two values are equal, arrays and all."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if hasattr(a, "__dataclass_fields__"):
        return type(a) is type(b) and all(
            same(getattr(a, field.name), getattr(b, field.name)) for field in fields(a)
        )
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict | MappingProxyType):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


@given(plain)
def test_plain_data_comes_back(value):
    assert same(value, travelled(value))


def test_a_whole_snapshot_comes_back_and_cannot_be_written_to():
    snapshot = FakeSession(paused=True).snapshot()
    back = travelled(snapshot)
    assert same(snapshot, back)
    assert back.state is RunState.PAUSED
    assert isinstance(back.position, Position)
    assert isinstance(back.update, UpdateView)
    with pytest.raises(ValueError, match="read-only"):
        back.rollout.reward[0] = 1


def test_named_things_keep_their_kind():
    values = (Stage.TARGETS, Command.PAUSE, Event(1.5, "alert", "mind"), np.float32(0.5), b"".hex())
    back = travelled(values)
    assert back == (Stage.TARGETS, Command.PAUSE, Event(1.5, "alert", "mind"), 0.5, "")
    assert type(back[2]) is Event


def test_messages_that_arrive_in_pieces_are_put_together():
    data = pack({"a": np.arange(5.0)}) + pack("second")
    buffer, found = bytearray(), []
    for byte in data:
        buffer.append(byte)
        found += unpack(buffer)
    assert len(found) == 2
    assert not buffer


def test_a_field_that_only_the_other_side_knows_is_left_out():
    text = to_json(Event(1.0, "alert", "text")).replace('"kind"', '"new": 3, "kind"')
    assert from_json(text) == Event(1.0, "alert", "text")


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", np.array(["text"]), print])
def test_what_is_not_plain_is_refused(value):
    with pytest.raises(TypeError):
        pack(value)


def message(text):
    return bytearray(struct.pack("!4sII", b"ppo1", len(text), 0) + text)


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b'{"d": "os:system", "f": {"command": "true"}}',
        b'{"d": "trainer.session:Session", "f": {}}',
        b'{"d": "trainer.rundir:RunDir", "f": {"path": "x"}}',
        b'{"d": "trainer.rundir:Path", "f": {}}',
        b'{"e": "trainer.telemetry:RunState", "v": "no such state"}',
        b'{"d": "trainer.nothing:X", "f": {}}',
        b'{"a": ["|O", [1], 0, 8]}',
        b'{"a": ["<f4", [100], 0, 4]}',
    ],
)
def test_what_is_no_message_is_refused_and_runs_nothing(text):
    with pytest.raises(WireError):
        unpack(message(text))


def test_another_language_and_a_size_beyond_sense_are_refused():
    with pytest.raises(WireError):
        unpack(bytearray(b"GET / HTTP/1.1\r\n\r\n"))
    with pytest.raises(WireError):
        unpack(bytearray(struct.pack("!4sII", b"ppo1", 2**31, 2**31)))
