from pathlib import Path

from presets.compare import differing_settings


def folder(name, text):
    Path(name).mkdir()
    Path(name, "config.toml").write_text(text)
    return Path(name)


def test_only_keys_that_differ_are_listed_with_every_value():
    runs = [
        folder("a", 'name = "a"\n[trainer]\ngamma = 0.99\nseed = 1\nschedule = "fixed"\n'),
        folder("b", 'name = "b"\n[trainer]\ngamma = 0.99\nseed = 2\n[env.params]\nx = [1, 2]\n'),
        folder("c", "[trainer]\ngamma = 0.99\nseed = 1\n"),
    ]
    assert differing_settings(runs) == {
        "trainer.seed": ["1", "2", "1"],
        "trainer.schedule": ['"fixed"', "unset", "unset"],
        "env.params.x": ["unset", "[1, 2]", "unset"],
    }


def test_a_file_that_cannot_be_read_differs_in_all():
    runs = [folder("a", "x = 1\n"), folder("b", "not toml"), Path("nowhere")]
    assert differing_settings(runs) == {"x": ["1", "unset", "unset"]}
