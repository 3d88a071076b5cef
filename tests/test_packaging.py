"""The built wheel is whole: installed alone, it finds its presets and robots and trains."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("presets", "sim", "trainer", "tui")
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from a copy of the sources, so that nothing is left beside them."""
    copy = tmp_path_factory.mktemp("sources")
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", "."],
        cwd=copy,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert not re.search(r"deprecat|\w+Warning", built.stdout + built.stderr)
    (path,) = (copy / "dist").glob("ppo_tui-*.whl")
    return path


def test_the_wheel_holds_all_that_the_sources_hold(wheel):
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == sources
    for kind in ("presets/go2_flat.toml", "sim/robots/go2.xml", "trainer/py.typed"):
        assert kind in packed
    assert any(name.endswith(".tcss") for name in packed)


def test_the_installed_wheel_trains_in_another_folder(wheel, tmp_path):
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    python = home / "bin" / "python"
    target = sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)})
    install = ["install", "--no-deps", "--no-index", "--quiet", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True)
    # Its dependencies are those of this environment; our own editable install is not among them.
    Path(target, "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def call(*words):
        return subprocess.run(
            [home / "bin" / words[0], *words[1:]],
            cwd=elsewhere,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
        )

    where = call("python", "-c", "import tui, sim; print(tui.__file__, sim.__file__)").stdout
    assert where.count(str(home)) == 2
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert call("ppo-tui", "--version").stdout == f"{version}\n"
    listed = call("ppo-tui", "presets").stdout
    shipped = sorted(path.stem for path in (ROOT / "presets").glob("*.toml"))
    assert re.findall(r"^\w+", listed, re.MULTILINE) == shipped
    trained = call("ppo-tui", "run", "go2_flat", "--num-envs", "4", "--iterations", "1")
    assert trained.returncode == 0, trained.stderr
    assert "it 1/1" in trained.stdout
    assert [path.name for path in (elsewhere / "runs").iterdir()] == ["go2_flat"]


# The README and the check of a fresh clone say the same.


def commands(text):
    return [line.strip() for line in text.splitlines() if ".venv" in line]


def test_the_readme_begins_with_the_two_commands():
    first_screen = "\n".join(README.splitlines()[:40])
    blocks = re.findall(r"```\w*\n(.*?)```", first_screen, re.DOTALL)
    assert [commands(block)[-1] for block in blocks[:2]] == [
        ".venv/bin/ppo-tui run go2_flat",
        ".venv/bin/pytest",
    ]


def test_the_check_of_a_clone_runs_what_the_readme_says():
    block = re.findall(r"```\w*\n(.*?)```", README, re.DOTALL)[1]
    checked = (ROOT / ".ci" / "run").read_text()
    for command in commands(block):
        assert command.replace("pip install", "pip install -q") in checked or command in checked
