import numpy as np
import pytest

from tui.draw.spans import Charset, Role, cells, plain
from tui.draw.tracking import tracking_strips

LABELS, RANGES = ["forward m/s", "turn rad/s"], [(-1.0, 1.0), (-2.0, 2.0)]


def strips(width=60, height=12, points=50, charset=Charset.BRAILLE, told=None, real=None):
    seconds = np.linspace(0, 5, points)
    wave = np.sin(seconds)
    told = np.stack((0 * wave + 0.5, 0 * wave), 1) if told is None else told
    real = np.stack((wave, 2 * wave), 1) if real is None else real
    return tracking_strips(LABELS, RANGES, seconds, told, real, 10.0, width, height, charset)


@pytest.mark.parametrize("size", [(5, 3), (20, 3), (60, 12), (60, 5), (120, 2)])
@pytest.mark.parametrize("charset", Charset)
@pytest.mark.parametrize("points", [0, 1, 50])
def test_strips_fill_their_room(size, charset, points):
    lines = strips(*size, points=points, charset=charset)
    assert len(lines) == size[1]
    assert all(cells(line) == size[0] for line in lines)


def test_each_quantity_has_a_strip_of_its_own_range_as_far_as_there_is_room():
    lines = [plain(line) for line in strips()]
    assert lines[0].startswith("forward m/s")
    assert lines[6].startswith("turn rad/s")
    assert lines[1].split("│")[0].strip() == "1"
    assert lines[11].split("│")[0].strip() == "-2"
    few = [plain(line) for line in strips(height=5)]
    assert few[0].startswith("forward")
    assert not any("turn" in line for line in few)


def test_the_newest_moment_is_at_the_right_end_and_the_old_half_is_empty():
    half = (60 - 8) // 2 + 8
    for line in strips()[1:6]:
        text = plain(line)
        assert all(c in " ⠁⠂⠄⡀│-1" for c in text[: half - 2])  # the zero line alone
    assert any(span.role == Role.SUCCESS for line in strips()[1:6] for span in line)
    assert any(span.role == Role.WARNING for line in strips()[1:6] for span in line)


def test_what_is_not_finite_is_left_out():
    nan = np.full((50, 2), np.nan)
    for wrong in (nan, nan * 0 + np.inf):
        assert len(strips(told=wrong, real=wrong)) == 12
