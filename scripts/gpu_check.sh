#!/bin/sh
# What is checked where an accelerator is there: runs are the same on it as on the CPU, then the benchmark.
# Run from the repository root; under six minutes on one current GPU. Needs jax with its accelerator's plugin,
# and what pyproject.toml names (tyro, pydantic, polars, jaxtyping); PyTorch for the comparison.
set -eu
export PYTHONPATH="$PWD" XLA_PYTHON_CLIENT_PREALLOCATE=false
echo "== parity with the CPU"
timeout 120 python scripts/device_parity.py
echo "== benchmark"
timeout 220 python scripts/bench.py --seeds 1 32 128 512 --epochs 2 --rounds 3 --out "${OUT:-results/bench}"
