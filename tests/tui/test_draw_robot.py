import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.poses import arm, array, beam, walker
from tui.draw.robot import (
    ground_below,
    has_top_view,
    legend,
    readings,
    short_names,
    side_view,
    top_view,
)
from tui.draw.spans import Charset, Role, cells, plain

SIZES = [(1, 1), (2, 3), (12, 4), (30, 10), (76, 20), (150, 45)]


def text(lines):
    return [plain(line) for line in lines]


def marks(lines, role):
    """Cells of a role, as (column, row)."""
    found = []
    for row, line in enumerate(lines):
        column = 0
        for span in line:
            found += [(column + i, row) for i in range(len(span.text)) if span.role == role]
            column += cells((span,))
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("charset", Charset)
@pytest.mark.parametrize("pose", [walker(), arm(), beam()], ids=["walker", "arm", "beam"])
def test_a_view_fills_its_room_in_every_charset(pose, charset, size):
    for draw in (side_view, top_view):
        lines = draw(pose, *size, charset)
        assert len(lines) == size[1]
        assert all(cells(line) == size[0] for line in lines)
        if charset is Charset.ASCII:
            assert all(line.isascii() for line in text(lines))


def test_a_walker_stands_on_its_foot():
    lines = side_view(walker(), 40, 16, Charset.ASCII)
    body = next(row for row, line in enumerate(text(lines)) if "---" in line)
    ((foot, below),) = marks(lines, Role.SUCCESS)
    assert text(lines)[below][foot] == "@"
    assert body < below
    assert abs(foot - 20) <= 1  # below the middle of the body
    ground = [row for row, line in enumerate(text(lines)) if line.startswith("----")]
    assert ground == [below]


def test_a_foot_in_the_air_is_a_ring():
    lines = side_view(walker(contacts=np.array([False])), 40, 16, Charset.ASCII)
    assert marks(lines, Role.SUCCESS) == []
    assert "o" in "".join(text(lines))


def test_the_view_follows_and_the_marks_of_the_ground_stay():
    here = side_view(walker(), 60, 16)
    moved = walker(
        position=array(2.25, 1.0, 0.3),
        lines=walker().lines + array(0.25, 0, 0),
        balls=walker().balls + array(0.25, 0, 0, 0),
        contact_points=walker().contact_points + array(0.25, 0, 0),
    )
    there = side_view(moved, 60, 16)
    assert here[:-3] == there[:-3]  # the robot in the same place
    assert here[-3:] != there[-3:]  # on ground that went by


def test_the_robot_looks_to_the_right_whatever_its_heading():
    def turned(points, angle):
        cos, sin = math.cos(angle), math.sin(angle)
        centre = array(2.0, 1.0, 0.0)
        return (points - centre) @ array((cos, sin, 0), (-sin, cos, 0), (0, 0, 1)) + centre

    straight = walker(floor=None)
    for angle in (0.7, math.pi / 2, -2.5):
        pose = walker(
            floor=None,
            heading=angle,
            lines=turned(straight.lines, angle),
            balls=np.hstack((turned(straight.balls[:, :3], angle), straight.balls[:, 3:])),
            contact_points=turned(straight.contact_points, angle),
        )
        for draw in (side_view, top_view):
            seen, wanted = ("".join(text(draw(of, 50, 20))) for of in (pose, straight))
            unlike = sum(one != other for one, other in zip(seen, wanted, strict=True))
            assert unlike <= 10  # of 1000: dots round both ways


def test_what_lies_on_the_left_is_drawn_thinly():
    near = side_view(walker(balls=np.zeros((0, 4), np.float32)), 60, 20)
    far = walker(lines=walker().lines + array(0, 0.4, 0), balls=np.zeros((0, 4), np.float32))
    far = side_view(far, 60, 20)
    assert marks(near, Role.PRIMARY)
    assert not marks(far, Role.PRIMARY)
    assert marks(far, Role.TREND)
    dots = [sum(c > "\u2800" for c in "".join(text(view))) for view in (near, far)]
    assert dots[1] <= dots[0]


def test_arrows_show_what_is_told_and_what_is():
    pose = walker(
        told_velocity=array(1.0, 0.0, 0.0), velocity=array(0.0, 1.0, 0.0), lines=walker().lines[:0]
    )
    lines = top_view(pose, 60, 30)
    told, real = marks(lines, Role.WARNING), marks(lines, Role.SUCCESS)
    assert max(x for x, _ in told) > 40  # ahead is right
    assert min(y for _, y in real) < 5  # left is up
    assert max(x for x, _ in real) < 36


def test_arcs_show_which_way_it_turns():
    left = walker(told_velocity=array(0, 0, 1.0), velocity=array(0, 0, 0))
    right = walker(told_velocity=array(0, 0, -1.0), velocity=array(0, 0, 0))
    above = [y for _, y in marks(top_view(left, 60, 30), Role.WARNING)]
    below = [y for _, y in marks(top_view(right, 60, 30), Role.WARNING)]
    assert max(above) <= 15 <= min(below) + 1


def rough(heights, **changes):
    return walker(floor=None, ground=np.asarray(heights, np.float32), **changes)


def test_the_profile_is_the_ground_under_the_robot():
    side = np.arange(-2.0, 2.01, 0.1)
    stairs = np.tile(np.where(side > 0.25, 0.1, 0.0), (len(side), 1))
    lines = side_view(rough(stairs), 60, 24, Charset.ASCII)
    rows = [
        {y for x, y in marks(lines, Role.GUIDE) if x in columns and text(lines)[y][x] == "-"}
        for columns in (range(5, 25), range(50, 60))
    ]
    assert all(len(found) == 1 for found in rows)
    assert min(rows[1]) < min(rows[0])


def test_rising_ground_has_contour_lines_and_level_ground_none():
    side = np.arange(-2.0, 2.01, 0.1)
    slope = np.tile(0.3 * side, (len(side), 1))
    assert marks(top_view(rough(slope), 60, 30), Role.GUIDE)
    assert not marks(top_view(rough(np.zeros_like(slope)), 60, 30), Role.GUIDE)


def test_the_view_keeps_level_over_uneven_ground():
    uneven = np.random.default_rng(0).uniform(-0.05, 0.05, (41, 41))
    assert abs(ground_below(rough(uneven))[2]) < 0.02
    assert ground_below(rough(np.full((41, 41), np.nan)))[2] == 0.0
    assert ground_below(walker(floor=-0.4))[2] == pytest.approx(-0.4)


def test_a_target_is_drawn_in_both_views():
    for draw in (side_view, top_view):
        assert marks(draw(arm(), 60, 30), Role.WARNING)
        assert not marks(draw(beam(), 60, 30), Role.WARNING)


def test_a_trail_leads_to_the_robot():
    trail = np.stack([array(2.0 - 0.02 * k, 1.0, 0.3) for k in range(20)])
    found = marks(top_view(walker(lines=walker().lines[:0]), 60, 30, trail=trail), Role.TREND)
    assert found
    assert all(x <= 31 for x, _ in found)


def test_numbers_stand_beside_each_other():
    lines = text(readings(walker(touching=("base",), place="stairs, level 3"), 40))
    assert lines[0].split() == ["told", "real"]
    assert lines[1].split() == ["forward", "+0.80", "+0.75", "m/s"]
    assert lines[2].split() == ["left", "0.00", "0.00", "m/s"]  # no sign that comes and goes
    assert lines[3].split() == ["turn", "-0.50", "-0.40", "rad/s"]
    assert lines[4].split() == ["tilt", "2.9", "deg"]
    assert lines[5].split() == ["contact", "FL", "●"]
    assert lines[6].split() == ["touching", "base"]
    assert lines[7].split(maxsplit=1)[1].strip() == "stairs, level 3"
    assert lines[8].split(maxsplit=1)[1].strip() == "5.2 of 20 s"
    assert all(line.isascii() for line in text(readings(walker(), 40, Charset.ASCII)))
    assert plain(legend(Charset.ASCII)) == "..> told  --> real"


def test_names_of_feet_lose_what_they_share():
    assert short_names(["FL_foot", "RR_foot"]) == ["FL", "RR"]
    assert short_names(["FL_foot", "hand"]) == ["FL_foot", "hand"]
    assert short_names([]) == []


def test_a_view_from_above_is_for_tasks_that_leave_the_plane():
    assert has_top_view(walker())
    assert has_top_view(arm())
    assert not has_top_view(beam())


@given(
    st.sampled_from(["position", "lines", "balls", "velocity", "told_velocity", "ground"]),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e30]),
    st.sampled_from(Charset),
)
def test_a_broken_world_is_drawn_as_far_as_it_goes(field, number, charset):
    pose = rough(np.zeros((41, 41))) if field == "ground" else walker()
    broken = np.full_like(getattr(pose, field), number)
    pose = dataclasses.replace(pose, **{field: broken})
    with np.errstate(all="ignore"):
        for draw in (side_view, top_view):
            assert len(draw(pose, 40, 12, charset)) == 12
    assert readings(dataclasses.replace(pose, tilt=number), 30, charset)
