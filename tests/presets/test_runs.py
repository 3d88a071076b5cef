from pathlib import Path

import pytest

from presets.problems import PresetError
from presets.runs import find_run, runs

FIRST, SECOND, THIRD = "2026-01-01_00-00-00", "2026-01-02_00-00-00_wide", "2026-01-03_00-00-00"


@pytest.fixture(autouse=True)
def _three_runs_of_two_presets():
    for name in (f"tiny/{FIRST}", f"tiny/{SECOND}", f"other/{THIRD}", f"other/{FIRST}"):
        folder = Path("runs", name)
        folder.mkdir(parents=True)
        (folder / "config.toml").touch()
    Path("runs/tiny/2026-09-09_00-00-00").mkdir()  # holds no run
    Path("runs/notes.txt").touch()
    Path("mine").mkdir()
    Path("mine/config.toml").touch()


def refusal(*args):
    with pytest.raises(PresetError) as caught:
        find_run(*args)
    return str(caught.value)


def test_runs_come_the_newest_first():
    newest = [f"{path.parent.name}/{path.name}" for path in runs()]
    assert newest == [f"other/{THIRD}", f"tiny/{SECOND}", f"tiny/{FIRST}", f"other/{FIRST}"]
    assert [path.name for path in runs("tiny")] == [SECOND, FIRST]
    assert runs("nothing") == []


@pytest.mark.parametrize(
    ("name", "preset", "found"),
    [
        ("latest", None, f"runs/other/{THIRD}"),
        ("latest", "tiny", f"runs/tiny/{SECOND}"),
        ("tiny/latest", None, f"runs/tiny/{SECOND}"),
        (SECOND, None, f"runs/tiny/{SECOND}"),
        (FIRST, "tiny", f"runs/tiny/{FIRST}"),
        (f"other/{FIRST}", None, f"runs/other/{FIRST}"),
        (f"runs/tiny/{FIRST}", "other", f"runs/tiny/{FIRST}"),
        ("mine", None, "mine"),
    ],
)
def test_a_run_is_found_by_folder_name_or_latest(name, preset, found):
    assert find_run(name, preset) == Path(found)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((FIRST,), f"{FIRST}: there are several; which one? tiny/{FIRST} or other/{FIRST}"),
        (("2026-01-02_00-00-00", None, "--resume"), "--resume 2026-01-02_00-00-00: no run"),
        (("2026-01-02_00-00-00",), f"did you mean {SECOND}?"),
        (("zzz", "tiny"), f'zzz: no run "zzz"; the newest: {SECOND}'),
        (("zzz", "empty"), 'no run "zzz"; runs/empty holds none'),
        (("latest", "empty"), "latest: runs/empty holds no run"),
        (("empty/latest",), "empty/latest: runs/empty holds no run"),
        (("runs/notes.txt",), "is a file; give the run's folder"),
        (("runs/tiny",), f"no config.toml; did you mean runs/tiny/{SECOND}?"),
        (("tiny",), f"did you mean runs/tiny/{SECOND}?"),
        (("",), 'no run ""'),
    ],
)
def test_what_is_no_run_is_refused_with_what_was_meant(args, said):
    assert said in refusal(*args)
