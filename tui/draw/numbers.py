"""Numbers as text of a fixed width, so that nothing on the screen jitters."""

from __future__ import annotations

import math

SUFFIXES = ("", "k", "M", "G", "T", "P", "E")
"""Powers of 1000, from 10^0 to 10^18."""

DAY = 86_400


def number(value: float, width: int = 7, *, sign: bool = False) -> str:
    """Write a number with three to four significant digits, right-aligned in `width` cells.

    From 0.001 to 9999 plainly, larger with a suffix (104.6k), smaller with an exponent (4.4e-4).
    Where `width` is too small digits are left off; where not one digit fits the cells are filled
    with "#", so a wrong number is never shown.

    Args:
        value: any float.
        width: cells; 7 hold every number with its sign.
        sign: write "+" before positive numbers.
    """
    if width <= 0:
        return ""
    value = float(value)
    if not math.isfinite(value):
        text = "nan" if math.isnan(value) else ("-inf" if value < 0 else "inf")
        return text[-width:].rjust(width)
    prefix = "-" if value < 0 else ("+" if sign and value > 0 else "")
    for digits in (3, 2, 1, 0):
        text = prefix + _magnitude(abs(value), digits)
        if len(text) <= width:
            return text.rjust(width)
    return "#" * width


def _magnitude(value: float, digits: int) -> str:
    """Write a number >= 0 with about `digits` + 1 significant digits."""
    if value == 0:
        return "0"
    if value < 0.9995e-3:
        mantissa, exponent = f"{value:.{min(digits, 1)}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    if value < 1:
        text = f"{value:.{digits + 1}f}"
        return text if float(text) else f"{value:.0e}".replace("e-0", "e-")
    if value < 9999.5:
        return f"{value:.{max(0, digits - int(math.log10(value)))}f}"
    power = min(int(math.log10(value) / 3), len(SUFFIXES) - 1)
    if value / 1000**power >= 999.95 and power < len(SUFFIXES) - 1:
        power += 1
    scaled = value / 1000**power
    if scaled >= 999.95:
        return f"{value:.0e}".replace("e+", "e")
    return f"{scaled:.{min(digits, 1)}f}{SUFFIXES[power]}"


def known(value: float, width: int = 7, *, sign: bool = False) -> str:
    """Write a number like `number`, one that is not known yet (NaN) as "-"."""
    return "-".rjust(width)[:width] if math.isnan(value) else number(value, width, sign=sign)


def percent(share: float, width: int = 4) -> str:
    """Write a share of 1 in percent, right-aligned: " 61%", " <1%"; NaN as "-"."""
    if width <= 0:
        return ""
    if not math.isfinite(share):
        text = "-"
    elif 0 < share < 0.005:
        text = "<1%"
    elif abs(share) < 100:
        text = f"{100 * share:.0f}%"
    else:
        text = "big"
    return text[-width:].rjust(width) if len(text) <= width else "#" * width


def duration(seconds: float) -> str:
    """Write hours, minutes and seconds as "00:41:07", beyond a day "2d 03:12:09"; NaN as dashes."""
    if not math.isfinite(seconds):
        return "--:--:--"
    whole = max(0, round(seconds))
    days, rest = divmod(whole, DAY)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}d {clock}" if days else clock


def short_seconds(seconds: float, width: int = 7) -> str:
    """Write a short time with its unit, right-aligned: "1.23 s", "573 ms", "12 µs"; NaN as "-"."""
    if not math.isfinite(seconds):
        text = "-"
    elif seconds <= 0:
        text = "0 ms"
    elif seconds < 0.9995e-3:
        text = f"{seconds * 1e6:.0f} µs" if seconds >= 0.5e-6 else "<1 µs"
    elif seconds < 0.9995:
        text = f"{seconds * 1e3:.{1 if seconds < 0.00995 else 0}f} ms"
    elif seconds < 99.95:
        text = f"{seconds:.{2 if seconds < 9.995 else 1}f} s"
    else:
        text = f"{number(seconds, 5).strip()} s"
    return text.rjust(width) if len(text) <= width else "#" * max(width, 0)


def count(value: int) -> str:
    """Write a count with thousands separators, from ten million on with a suffix."""
    return f"{value:,}" if abs(value) < 10_000_000 else number(value).strip()


def plural(value: int, noun: str) -> str:
    """Write a count of things: "1 world", "4,096 worlds"."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def whole_number(value: int, width: int = 7) -> str:
    """Write a count right-aligned, with a suffix only where its digits do not fit."""
    text = str(value)
    return text.rjust(width) if len(text) <= width else number(value, width)


def num_bytes(value: float, width: int = 9) -> str:
    """Write a size in memory, right-aligned: "512 B", "4.5 MiB"."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = 0
    while abs(value) >= 1023.5 and power < len(units) - 1:
        value, power = value / 1024, power + 1
    text = f"{value:.{1 if power and abs(value) < 99.95 else 0}f} {units[power]}"
    return text.rjust(width) if len(text) <= width else "#" * max(width, 0)
