#!/usr/bin/env bash
# On a machine with a CUDA GPU: the tests that need one, then speed and memory of the walking tasks
# at 4,096 worlds, beside mjlab where that is installed, here or for the Python that MJLAB_PYTHON
# names. Options are those of gpu.py.
#
#     benchmarks/gpu.sh [--device cuda:1] [--num-envs 4096] [--iterations 50]
set -eu
cd "$(dirname "$0")/.."
exec "${PYTHON:-python}" -m benchmarks.gpu "$@"
