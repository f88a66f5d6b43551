#!/bin/sh
# What is checked where an accelerator is there: runs are the same on it as on the CPU, then the benchmark.
#   scripts/gpu_check.sh          under six minutes on one current GPU
#   scripts/gpu_check.sh cifar    a part of the seed's own experiment, CIFAR-10 with a ResNet: four seeds, ten epochs;
#                                 wants JAXPU_DATA_DIR with cifar10.npz or cifar10_jpeg.npz; under ten minutes
# Run from the repository root. Needs jax with its accelerator's plugin, and what pyproject.toml names (tyro, pydantic,
# polars, jaxtyping); PyTorch for the comparison.
set -eu
export PYTHONPATH="$PWD" XLA_PYTHON_CLIENT_PREALLOCATE=false
out="${OUT:-results}"
case "${1:-check}" in
check)
    echo "== parity with the CPU"
    timeout 120 python scripts/device_parity.py
    echo "== benchmark"
    timeout 220 python scripts/bench.py --seeds 1 32 128 512 --epochs 2 --rounds 3 --out "$out/bench"
    ;;
cifar)
    echo "== CIFAR-10"
    timeout 570 python -m jaxpu run encouraging/encouraging_cifar --seeds 4 training.epochs=10 \
        --out "$out/encouraging_cifar"
    ;;
*)
    echo "expected check or cifar, got $1" >&2
    exit 2
    ;;
esac
