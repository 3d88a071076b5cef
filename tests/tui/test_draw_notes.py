"""Sentences of the status line: whole ones, the weightiest first, and where the rest stands."""

import pytest
from rich.cells import cell_len

from tui.draw.notes import fitting, folded

NOTES = (
    "no GPU (no NVIDIA driver): 512 worlds; go2_flat runs its CPU table",
    "seed 1915476607 was drawn; give it again to repeat this run",
    "torch takes 1 thread a process (OMP_NUM_THREADS)",
)


def test_where_all_fit_all_are_written():
    assert fitting(NOTES, 200) == "  ·  ".join(NOTES)
    assert fitting(NOTES, 0) == "  ·  ".join(NOTES)
    assert fitting((), 80) == ""


def test_explanations_go_first_then_what_weighs_least():
    assert fitting(NOTES, 122) == (
        "no GPU (no NVIDIA driver): 512 worlds  ·  seed 1915476607 was drawn"
        "  ·  torch takes 1 thread a process (OMP_NUM_THREADS)"
    )
    assert fitting(NOTES, 88, "7: all notes") == (
        "no GPU (no NVIDIA driver): 512 worlds  ·  seed 1915476607 was drawn  ·  7: all notes"
    )
    assert fitting(NOTES, 60, "7: all notes") == (
        "no GPU (no NVIDIA driver): 512 worlds  ·  7: all notes"
    )


@pytest.mark.parametrize("width", range(1, 200))
def test_no_width_cuts_a_sentence(width):
    heads = [note.partition(";")[0] for note in NOTES]
    line = fitting(NOTES, width, "7: all notes")
    assert cell_len(line) <= width
    if width >= len("7: all notes"):
        written = line.split("  ·  ")
        assert [part for part in written if part not in (*NOTES, *heads, "7: all notes")] == []


def test_a_line_that_must_say_something_is_cut_rather_than_empty():
    assert fitting(("FAILED  a very long message", "q quits"), 12) == "FAILED  a v…"
    assert fitting(("FAILED  short", "q quits"), 25) == "FAILED  short  ·  q quits"


def test_a_semicolon_that_is_a_key_parts_nothing():
    assert fitting(("LOOKING BACK", ", ; move"), 80) == "LOOKING BACK  ·  , ; move"
    assert fitting(("LOOKING BACK", ", ; move", "x" * 80), 40) == "LOOKING BACK  ·  , ; move"


def test_folded_notes_hold_every_word():
    lines = folded(NOTES, 30)
    assert max(map(len, lines)) <= 30
    words = " ".join(lines).split()
    assert [word for word in words if word != "·"] == " ".join(NOTES).split()
