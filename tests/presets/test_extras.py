from pathlib import Path

import pytest

from presets.build import Device, new_session
from presets.extras import require
from presets.loader import load
from presets.problems import PresetError


def test_a_package_that_is_there_passes_without_being_imported():
    require("json", "x", "it")


@pytest.mark.parametrize("name", ["no_such_package", "only_a_folder"])
def test_a_package_that_is_missing_is_refused_with_its_extra(name, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "only_a_folder").mkdir()
    with pytest.raises(PresetError) as caught:
        require(name, "wandb", "--logger wandb")
    assert caught.value.messages == [
        f"--logger wandb: needs the package {name}; install it: pip install 'ppo-tui[wandb]'"
    ]


@pytest.mark.parametrize(
    ("settings", "flags", "place"),
    [
        ((), {"--logger": "wandb"}, '--logger "wandb": needs'),
        (("trainer.logger=wandb",), {}, '--set trainer.logger="wandb": needs'),
    ],
)
def test_a_tracker_without_its_package_leaves_no_folder(settings, flags, place, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PresetError) as caught:
        new_session(load("tiny", settings, flags=flags), Device("cpu"))
    assert caught.value.messages[0].startswith(place)
    assert not Path("runs").exists()


def test_a_logger_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(PresetError, match="did you mean wandb") as caught:
        load("tiny", flags={"--logger": "wandbb"})
    assert caught.value.messages[0].startswith('--logger "wandbb": must be')
