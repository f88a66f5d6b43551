"""ALS on many instances: jaxpu beside a NumPy loop over instances, the same numbers, in interleaved rounds.

Workload: one sweep (X, then Y) with m = 50 classifiers, n = 100,000 instances, d = 20, in float64, on two cores. The
first loop is the one that papers and the original code spell out, with diagonal matrices; for the classifiers these
are n x n, 80 GB each here, so it runs at n = 2,000 and 5,000 alone. The second has diagonals of m x m only, the third
none. The last two are timed on a part of the instances and scaled to all of them; the largest difference of results is
taken on that part.

    python scripts/bench_ensemble.py    # writes results/bench/ensemble.md and ensemble_rounds.csv
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import polars as pl
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxpu import ensemble, runs

M, D, RIDGE = 50, 20, 0.01
SMALL = (2_000, 5_000)
OUT = Path(__file__).parents[1] / "results" / "bench"


def problem(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ratings and certainty, and Y to start from."""
    rng = np.random.default_rng(0)
    ratings = rng.random((M, n))
    return ratings, np.abs(ratings - 0.5), rng.normal(size=(D, n))


def loop(fixed: np.ndarray, r: np.ndarray, c: np.ndarray, *, diagonal: bool) -> np.ndarray:
    """One system after the other."""
    solved = np.empty((len(fixed), r.shape[1]))
    for i in range(r.shape[1]):
        weighted = fixed @ np.diag(c[:, i]) if diagonal else fixed * c[:, i]
        left = weighted @ fixed.T + RIDGE * np.eye(len(fixed))
        solved[:, i] = np.linalg.solve(left, weighted @ r[:, i])
    return solved


def time_loop(
    data: tuple[np.ndarray, np.ndarray, np.ndarray], part: int, *, diagonal: bool, literal: bool = False
) -> tuple[float, np.ndarray]:
    """Seconds of a sweep, the instances' half scaled up from a part of them, and Y of the part."""
    r, c, y = data
    began = time.perf_counter()
    x = loop(y, r.T, c.T, diagonal=literal)
    middle = time.perf_counter()
    solved = loop(x, r[:, :part], c[:, :part], diagonal=diagonal)
    return middle - began + (time.perf_counter() - middle) * r.shape[1] / part, solved


def time_jaxpu(sweep, data: tuple[jax.Array, ...]) -> tuple[float, np.ndarray]:
    """Seconds of a compiled sweep, and Y."""
    began = time.perf_counter()
    factors = sweep(*data)
    factors.y.block_until_ready()
    return time.perf_counter() - began, np.asarray(factors.y)


def compiled(dtype: str, data: tuple[np.ndarray, ...]) -> tuple:
    """The sweep as a program, and its arguments on the device."""
    mesh = jax.make_mesh((len(jax.devices()),), ("instances",), axis_types=(AxisType.Auto,))
    split, everywhere = PartitionSpec(None, "instances"), PartitionSpec()
    arrays = tuple(jax.device_put(jnp.asarray(a, dtype), NamedSharding(mesh, split)) for a in data)

    def local(r: jax.Array, c: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        start = ensemble.Factors(jnp.zeros((D, M), dtype), y)
        swept = ensemble.als_sweep(start, r, c, ridge=jnp.asarray(RIDGE, dtype), over="instances")
        return swept.x, swept.y

    sharded = jax.shard_map(local, mesh=mesh, in_specs=split, out_specs=(everywhere, split), check_vma=False)
    sweep = jax.jit(lambda *data: ensemble.Factors(*sharded(*data)))

    began = time.perf_counter()
    sweep(*arrays).y.block_until_ready()
    return sweep, arrays, time.perf_counter() - began


def memory(n: int) -> tuple[float, float]:
    """MiB at the peak of a process that makes one float64 sweep, and MiB of its arguments and results."""
    done = subprocess.run([sys.executable, __file__, "--alone", str(n)], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1]), (2 * M + 2 * D) * n * 8 / 2**20


def alone(n: int) -> None:
    """The child of :func:`memory`."""
    with jax.enable_x64(True):
        compiled("float64", problem(n))
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def measure(n: int, part: int, rounds: int) -> tuple[pl.DataFrame, dict[str, float], dict[str, float]]:
    """Seconds of every contender in every round, the largest differences from the loop, compile seconds."""
    data = problem(n)
    rows, off, compile_seconds = [], {}, {}
    with jax.enable_x64(True):
        programs = {dtype: compiled(dtype, data) for dtype in ("float64", "float32")}
        for number in range(rounds):
            seconds, reference = time_loop(data, part, diagonal=True)
            row = {"round": number, "loop": seconds, "loop, no diagonal": time_loop(data, part, diagonal=False)[0]}
            for dtype, (sweep, arrays, took) in programs.items():
                row[f"jaxpu {dtype}"], y = time_jaxpu(sweep, arrays)
                off[f"jaxpu {dtype}"] = float(np.abs(y[:, :part] - reference).max())
                compile_seconds[f"jaxpu {dtype}"] = took
            rows.append(row)
            print(row, flush=True)
    return pl.DataFrame(rows), off, compile_seconds


def small_and_literal(n: int) -> tuple[float, float, float]:
    """Seconds of the loop with all its diagonals, of jaxpu, and the largest difference, at a size that fits."""
    data = problem(n)
    with jax.enable_x64(True):
        sweep, arrays, _ = compiled("float64", data)
        seconds, reference = time_loop(data, n, diagonal=True, literal=True)
        times = [time_jaxpu(sweep, arrays) for _ in range(5)]
    return seconds, float(np.median([t for t, _ in times])), float(np.abs(times[0][1] - reference).max())


def markdown(
    rounds: pl.DataFrame,
    off: dict[str, float],
    took: dict[str, float],
    peaks: dict[int, tuple],
    n: int,
    small: dict[int, tuple],
) -> str:
    """The table for people."""

    def spread(values: pl.Series, digits: int) -> str:
        return f"{values.median():.{digits}f} [{values.min():.{digits}f}, {values.max():.{digits}f}]"

    lines = [
        "# Alternating least squares: m = 50, d = 20",
        "",
        f"Made by `python scripts/bench_ensemble.py`, commit `{(runs.commit()['commit'] or 'unknown')[:9]}`: "
        f"seconds of one sweep over n = {n:,} instances on {platform.machine()}, two cores of a shared machine; "
        f"{rounds.height} interleaved rounds, median [lowest, highest], ratios within a round.",
        "",
        "| contender | seconds | times faster than the loop | than that without diagonals | largest difference "
        "| compile (s) |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in rounds.columns[1:]:
        ratios = [spread(rounds[base] / rounds[name], 1) for base in ("loop", "loop, no diagonal")]
        difference = f"{off[name]:.0e}" if name in off else "–"
        compiles = f"{took[name]:.1f}" if name in took else "–"
        lines.append(f"| {name} | {spread(rounds[name], 3)} | {ratios[0]} | {ratios[1]} | {difference} | {compiles} |")
    lines += [
        "",
        "The original's loop, with n x n diagonals for the classifiers, whose time and memory grow with n² (80 GB a "
        "classifier at n = 100,000), against jaxpu in float64; each once after the other, jaxpu the median of five:",
        "",
        "| n | loop (s) | jaxpu (s) | times faster | largest difference |",
        "|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {size:,} | {slow:.2f} | {quick:.4f} | {slow / quick:.0f} | {difference:.0e} |"
        for size, (slow, quick, difference) in small.items()
    ]
    lines += ["", "| n | peak of the process (MiB) | arguments and results (MiB) |", "|---:|---:|---:|"]
    lines += [f"| {size:,} | {peak:.0f} | {least:.0f} |" for size, (peak, least) in peaks.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--part", type=int, default=10_000, help="instances that the loops are timed on")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))  # each has its share of the instances
    if arguments.alone:
        alone(arguments.alone)
        return
    n = arguments.instances
    rounds, off, took = measure(n, arguments.part, arguments.rounds)
    small = {size: small_and_literal(size) for size in SMALL}
    peaks = {size: memory(size) for size in (n // 4, n // 2, n, 2 * n)}
    runs.write_frame(OUT / "ensemble_rounds.csv", rounds)
    runs.write_text(OUT / "ensemble.md", markdown(rounds, off, took, peaks, n, small))
    print((OUT / "ensemble.md").read_text())


if __name__ == "__main__":
    main()
