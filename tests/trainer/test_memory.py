"""A lack of memory is recognised whoever reports it, and read for its numbers."""

import errno

import numpy as np
import pytest
import torch

from trainer.memory import available, fewer_worlds, shortage, size

CUDA = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.81 GiB of "
    "which 10.50 GiB is free. Process 1 has 129.31 GiB memory in use."
)


def raised(function):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which, is the question
        function()
    return caught.value


def test_a_real_tensor_that_cannot_be_is_read_for_its_size():
    found = shortage(raised(lambda: torch.empty(2**48, dtype=torch.float32)))
    assert found.asked == 2**50
    assert found.free == pytest.approx(available(), rel=0.5)


def test_a_real_array_that_cannot_be_is_read_for_its_size():
    found = shortage(raised(lambda: np.zeros(2**50)))
    assert found.asked == 8 * 2**50


@pytest.mark.parametrize(
    ("error", "asked", "free"),
    [
        (torch.OutOfMemoryError(CUDA), 20 * 2**30, int(10.5 * 2**30)),
        (RuntimeError("Failed to allocate 4096 bytes on device 'cuda:0'"), 4096, None),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling ..."), None, None),
    ],
)
def test_what_a_gpu_reports_says_nothing_of_main_memory(error, asked, free):
    found = shortage(error)
    assert (found.asked, found.free) == (asked, free)


@pytest.mark.parametrize(
    "error", [MemoryError(), ValueError("std::bad_alloc"), OSError(errno.ENOMEM, "no memory")]
)
def test_what_names_no_size_is_still_a_lack_of_memory(error):
    assert shortage(error).asked is None


@pytest.mark.parametrize(
    "error", [ValueError("boom"), RuntimeError("shapes differ"), OSError(errno.ENOSPC, "full")]
)
def test_other_errors_are_no_lack_of_memory(error):
    assert shortage(error) is None


def test_the_sentence_has_worlds_what_was_asked_for_and_what_is_free():
    found = shortage(torch.OutOfMemoryError(CUDA))
    assert found.sentence(8192) == (
        "out of memory with 8,192 worlds: asked for 21.5 GB, 11.3 GB free"
    )
    assert "out of memory: gone, " in shortage(MemoryError("gone")).sentence(0)


@pytest.mark.parametrize(
    ("num_envs", "needed", "free", "fewer"),
    [
        (4096, 0, 0, 2048),  # nothing is known
        (4096, 100, 26, 1024),
        (4096, 100, 99, 2048),
        (5000, 100, 90, 4096),
        (4096, 1, 5, 2048),  # it would fit, but did not
        (2, 100, 1, 1),
    ],
)
def test_fewer_worlds_are_a_power_of_two_that_fits(num_envs, needed, free, fewer):
    assert fewer_worlds(num_envs, needed, free) == fewer


def test_sizes_are_written_as_people_do():
    assert [size(n) for n in (12, 5_000, 201_031_680, 3.2e12, 2**50)] == [
        "12 bytes",
        "5 kB",
        "201 MB",
        "3.2 TB",
        "1,126 TB",
    ]
