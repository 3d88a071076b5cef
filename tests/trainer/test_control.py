"""What a person types is read, refused where it means nothing, and survives its way."""

import pytest

from trainer.breakpoints import EXAMPLES, Breakpoint, Watched, parse
from trainer.control import (
    Arm,
    Edit,
    PauseBehind,
    RunIterations,
    SlowMotion,
    Undo,
    read_value,
    write_value,
)
from trainer.stages import Stage
from trainer.wire import pack, unpack


@pytest.mark.parametrize(
    "request_",
    [
        RunIterations(7),
        SlowMotion(0.5),
        PauseBehind((Stage.STORE, Stage.FRESH)),
        Arm(parse("reward drop > 20% in 50 always")),
        Edit("env.commands.base_velocity.lin_vel_x", (-0.5, 1.0), "slower at first"),
        Undo(),
    ],
)
def test_a_request_travels_to_another_process_as_it_is(request_):
    assert unpack(bytearray(pack(request_))) == [request_]


@pytest.mark.parametrize(
    "make",
    [
        lambda: RunIterations(0),
        lambda: RunIterations("7"),
        lambda: SlowMotion(-1.0),
        lambda: SlowMotion(60.0),
        lambda: PauseBehind((9,)),
    ],
)
def test_a_request_beyond_its_limits_is_not_made(make):
    with pytest.raises(ValueError, match=r"\w"):
        make()


@pytest.mark.parametrize(
    ("text", "like", "value"),
    [("5e-3", 0.1, 0.005), ("-1, 0.5", (0.0, 1.0), (-1.0, 0.5)), (" fixed ", "adaptive", "fixed")],
)
def test_a_value_is_read_as_it_is_typed(text, like, value):
    assert read_value(text, like) == value
    assert read_value(write_value(value), like) == value


@pytest.mark.parametrize(
    ("text", "like", "said"),
    [
        ("much", 0.1, "must be a number"),
        ("", 0.1, "must be a number"),
        ("nan", 0.1, "finite"),
        ("1", (0.0, 1.0), "two numbers"),
        ("1 -1", (0.0, 1.0), "not in order"),
    ],
)
def test_what_is_no_value_is_refused_with_what_would_be_one(text, like, said):
    with pytest.raises(ValueError, match=said):
        read_value(text, like)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_of_a_breakpoint_is_read_and_written_back(text):
    found = parse(text)
    assert parse(found.text) == found
    if found.watched is not Watched.ITERATION:  # an iteration comes but once
        again = parse(text + " always")
        assert again.stays
        assert parse(again.text) == again


def test_a_metric_may_be_named_by_its_alias_or_its_last_part():
    tags = ("Loss/kl_mean", "Loss/entropy", "Episode_Reward/alive")
    wanted = Breakpoint(Watched.METRIC, 0.05, "Loss/kl_mean")
    assert parse("kl > 0.05", tags) == parse("Loss/kl_mean > 5e-2", tags) == wanted
    assert parse("alive<1", ("Episode_Reward/alive",)).tag == "Episode_Reward/alive"
    with pytest.raises(ValueError, match=r"did you mean Loss/entropy\?"):
        parse("Loss/entrpy < 2", tags)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "such as nan"),
        ("kl = 1", "such as nan"),
        ("kl > much", "'much' is no number"),
        ("iteration 10", "iteration 10 is over: 20 are done"),
        ("reward drop > 0%", "above 0"),
        ("reward drop > 5% in 1", "2 to 10,000"),
    ],
)
def test_what_is_no_breakpoint_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        parse(text, completed=20)
