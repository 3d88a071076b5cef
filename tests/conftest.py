import itertools
import os
import resource

import pytest
from hypothesis import settings

from tests import leftovers

# Small tensors gain nothing from a second thread, and threads of several test runs on one machine
# spin against each other: twenty times slower. Must be set before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A program that is not given a folder of its own remembers nothing: no folder can lie in a device.
os.environ["XDG_STATE_HOME"] = os.devnull

os.environ.update([leftovers.MARK.split("=")])

# The machines that run this are shared: a slow example is no failure, and no two runs differ.
settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")

_numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def _nobody_stays():
    """Kill whatever the tests of a file leave behind, such as a program that was not waited for."""
    yield
    leftovers.kill_all(leftovers.MARK)


@pytest.fixture(autouse=True)
def state_home(monkeypatch, tmp_path_factory):
    """Where what a program remembers would be kept: for each test another folder, not made yet."""
    folder = tmp_path_factory.getbasetemp() / f"state-{next(_numbers)}"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    for name in ("PPO_TUI_CHARSET", "TEXTUAL_COLOR_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def small_files():
    """A disk that takes no more than 10 kB of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
