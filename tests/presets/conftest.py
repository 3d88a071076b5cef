import pytest

from tests.presets.tiny import TINY, write


@pytest.fixture(autouse=True)
def _a_folder_of_its_own(tmp_path, monkeypatch):
    """Run each test in an empty folder with `presets/tiny.toml`, and no presets of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write(tmp_path, tiny=TINY)
