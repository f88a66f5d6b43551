"""Training speed, side by side in one process: a PyTorch loop as a user would write it, and jaxpu.

Workload W1: MLP 57-512-256-128-64-1 on Spambase under the seed protocol, batch 256, VPU loss with mixup (two
forward passes), dropout 0.2, Adam with L2, shuffling, one Beta draw a batch, and evaluation of training,
validation and test rows every epoch (F1, AUC, log-loss in PyTorch through scikit-learn; some sixty columns in
jaxpu). The unit is seed-steps (one batch of one seed) per CPU-second and per second of wall time. Rounds are
interleaved, so that all contenders meet the same neighbours on a shared machine; medians and ranges are
reported, and ratios are taken within a round.

Workload W2 is the same with LeNet on the first 6,000 images of MNIST (28 x 28), without dropout.

    pip install -e '.[bench]'
    python scripts/bench.py --workload W2        # writes results/bench/<device>-w2.json and .md
    python scripts/bench.py                      # W1, one CPU core; writes results/bench/<device>.json and .md
    python scripts/bench.py --before 941b0af     # and an earlier commit's jaxpu, in the same rounds
    python scripts/bench.py --seeds 1 32 128 512 # what scripts/gpu_check.sh runs on an accelerator

Without PyTorch the jaxpu half runs alone, and says so.
"""

import argparse
import contextlib
import dataclasses
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

# One core for everybody: thread settings alone leave XLA with more than one busy thread. CPU-seconds of two threads
# that share a core's execution units are worth less, so they would be unfair to whoever uses them.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import jax
import numpy as np
from bench_scale import checkout
from jax import numpy as jnp

from jaxpu import config, data, runs
from jaxpu.runs.placement import START, resolve
from jaxpu.runs.pool import Pool, Slot
from jaxpu.runs.store import Memory
from jaxpu.train import job

RATE, ALPHA, LR, L2, BATCH = 0.2, 0.3, 3e-4, 1e-4, 256


class Workload(NamedTuple):
    """A dataset, a network, and what arithmetic a step is: products of two forward passes and their gradients."""

    data: dict[str, Any]
    model: dict[str, Any]
    gflop: float


WORKLOADS = {
    "W1": Workload({"name": "spambase"}, {"dropout": [RATE] * 3}, 0.59),
    "W2": Workload({"name": "mnist", "options": {"rows": 6000}}, {"name": "lenet"}, 1.48),
}
CHOSEN = WORKLOADS[os.environ.get("JAXPU_BENCH", "W1")]
"""The workload; the command says which to the processes that it starts."""


def experiment(seeds: int, kind: str) -> config.Experiment:
    """The workload for jaxpu."""
    return config.parse(
        {
            "methods": ["vpu"],
            "data": {**CHOSEN.data, "validation": [0.01], "prior": "all"},
            "model": CHOSEN.model,
            "training": {"epochs": 40, "batch_size": BATCH, "lr": LR, "weight_decay": L2, "alpha": ALPHA},
            "selection": {"rules": ["val_f1"], "default": "val_f1", "stop": False},
            "seeds": seeds,
            "placement": {"kind": kind, "devices": 1, "part": seeds},
        }
    )


class Jaxpu:
    """jaxpu at some number of seeds on one placement: ``run()`` trains ``epochs`` epochs of every seed."""

    def __init__(self, seeds: int, kind: str, epochs: int):
        self.name, self.seeds, self.epochs = f"jaxpu {seeds} x {kind}", seeds, epochs
        asked = dataclasses.replace(experiment(seeds, kind).placement, segment=epochs)
        found = job.runs(experiment(seeds, kind))
        [only] = job.jobs(experiment(seeds, kind), found)
        self._pool = Pool(only, resolve(asked, only), asked, Memory(), lambda run: {}, found[0])
        self._states = jax.tree.map(np.copy, self._pool._states)
        for place, run in enumerate(found):
            self._pool._seat(place, Slot(run, self._pool._inputs(run)), START)
        began = time.perf_counter()
        self._pool.compile()
        self.compile_seconds = time.perf_counter() - began
        self.steps_a_seed = epochs * -(-len(only.inputs(found[0], {}).rows.train) // BATCH)

    def run(self) -> float:
        """Train, and return the mean test AUC at the end, as a check that something was learnt."""
        pool = self._pool
        assert pool._run is not None  # compiled above
        _, history, _ = pool._run(pool._shared, pool._arguments(), pool._put(jax.tree.map(np.copy, self._states)))
        return float(np.asarray(history["test_oracle_auc"])[:, -1].mean())


class Torch:
    """The loop that a PyTorch user would write: tensors on the device, index batches, eager mode."""

    def __init__(self, epochs: int, device: str):
        torch: Any = importlib.import_module("torch")  # an optional extra
        torch.set_num_threads(1)
        self.name, self.seeds, self.epochs = f"PyTorch {torch.__version__} eager", 1, epochs
        self._torch: Any = torch
        self._device: Any = torch.device(device)
        [cell] = config.expand(experiment(1, "map"))
        source = data.load(cell.data)
        prepared = data.prepare(cell.data, source, 0)
        x = (source.features() - prepared.rows.mean) / prepared.rows.sd
        at = {"device": self._device}
        x = x[:, None] if x.ndim == 3 else x  # channels first
        self._x = {k: torch.tensor(x[getattr(prepared.rows, k)], **at) for k in ("train", "val", "test")}
        self._y = {k: source.truth[getattr(prepared.rows, k)] for k in ("train", "val", "test")}
        self._labeled = torch.arange(len(prepared.rows.train), **at) < prepared.rows.n_labeled
        self.steps_a_seed = epochs * -(-len(prepared.rows.train) // BATCH)

    def run(self) -> float:
        """Train one seed, and return its test AUC."""
        torch = self._torch
        model = torch.nn.Sequential(*self._layers()).to(self._device)
        optimizer = torch.optim.Adam(model.parameters(), lr=LR, weight_decay=L2)
        beta = torch.distributions.Beta(ALPHA, ALPHA)
        auc = 0.0
        for _ in range(self.epochs):
            model.train()
            order = torch.randperm(len(self._labeled), device=self._device)
            for rows in order.split(BATCH):
                self._step(model, optimizer, beta, rows)
            auc = self._evaluate(model)
        return auc

    def _layers(self) -> list[Any]:
        """The layers of the workload's network."""
        nn = self._torch.nn
        if CHOSEN is WORKLOADS["W2"]:
            first, second = ([nn.Conv2d(a, b, 5), nn.MaxPool2d(2), nn.ReLU()] for a, b in ((1, 10), (10, 20)))
            return [*first, *second, nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 1)]
        layers: list[Any] = []
        for fan_in, fan_out, dropped in ((57, 512, 1), (512, 256, 1), (256, 128, 1), (128, 64, 0)):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU(), *[nn.Dropout(RATE)] * dropped]
        return [*layers, nn.Linear(64, 1)]

    def _step(self, model: Any, optimizer: Any, beta: Any, rows: Any) -> None:
        torch = self._torch
        x, labeled = self._x["train"][rows], self._labeled[rows]
        positives = x[labeled]
        if len(positives) == 0:
            return
        log_p = torch.nn.functional.logsigmoid(model(x).squeeze(1))
        partner = positives[torch.randint(len(positives), (len(x),), device=self._device)]
        lam = float(beta.sample())
        target = lam * log_p.detach().exp() + (1 - lam)
        log_mixed = torch.nn.functional.logsigmoid(model(lam * x + (1 - lam) * partner).squeeze(1))
        loss = log_p.logsumexp(0) - np.log(len(x)) - log_p[labeled].mean()
        loss = loss + lam * ((target.log() - log_mixed) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def _evaluate(self, model: Any) -> float:
        from sklearn.metrics import f1_score, log_loss, roc_auc_score

        model.eval()
        auc = 0.0
        with self._torch.no_grad():
            for part, y in self._y.items():
                p = self._torch.sigmoid(model(self._x[part]).squeeze(1)).cpu().numpy()
                # scikit-learn has no annotations, and its default, a string, is not the only type it takes
                f1_score(y, p > 0.5, zero_division=0)  # pyright: ignore[reportArgumentType]
                log_loss(y, p)
                auc = roc_auc_score(y, p)
        return float(auc)


class Before:
    """jaxpu of another commit, by that commit's scripts/bench.py, in a process that measures when it is told to."""

    CHILD = """
import inspect, json, pathlib, sys, tempfile
sys.path.insert(0, "scripts")
import bench
seeds, kind, epochs = sys.argv[1:]
folder = [pathlib.Path(tempfile.mkdtemp())] if "folder" in inspect.signature(bench.Jaxpu).parameters else []
contender = bench.Jaxpu(int(seeds), kind, int(epochs), *folder)
for _ in sys.stdin:
    print(json.dumps(bench.measure(contender)), flush=True)
"""

    def __init__(self, code: Path, commit: str, seeds: int, kind: str, epochs: int):
        self.name = f"jaxpu {seeds} x {kind} at {commit}"
        words = [sys.executable, "-c", self.CHILD, str(seeds), kind, str(epochs)]
        env = {**os.environ, "PYTHONPATH": str(code)}
        self._child = subprocess.Popen(
            words, cwd=code, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self) -> None:
        """Warm up."""
        self.measured()

    def measured(self) -> dict[str, float]:
        """One round, as :func:`measure` has it."""
        assert self._child.stdin is not None  # both are pipes
        assert self._child.stdout is not None
        self._child.stdin.write("\n")
        self._child.stdin.flush()
        for line in self._child.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"{self.name} ended with {self._child.wait()}")


def gemm_peak() -> float:
    """GFLOP per CPU-second of a 768³ float32 matrix product in XLA, the best of three."""
    a = jnp.ones((768, 768))
    product = jax.jit(lambda a: a @ a)
    product(a).block_until_ready()
    rates = []
    for _ in range(3):
        began = time.process_time()
        for _ in range(20):
            product(a).block_until_ready()
        rates.append(20 * 2 * 768**3 / (time.process_time() - began) / 1e9)
    return max(rates)


def measure(contender: Any) -> dict[str, float]:
    """One round of one contender: seed-steps per CPU-second and per wall second, and the AUC it ended with."""
    if isinstance(contender, Before):
        return contender.measured()
    cpu, wall = time.process_time(), time.perf_counter()
    auc = contender.run()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    steps = contender.seeds * contender.steps_a_seed
    return {"per_cpu_second": steps / cpu, "per_second": steps / wall, "auc": auc}


def fresh_process(seeds: int, kind: str, cache: str) -> dict[str, float]:
    """Compile seconds and peak memory, the device's where it says it, of one placement in a process of its own."""
    command = [sys.executable, __file__, "--alone", str(seeds), kind]
    done = subprocess.run(command, env={**os.environ, "JAXPU_CACHE_DIR": cache}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def alone(seeds: int, kind: str) -> None:
    """The child of :func:`fresh_process`."""
    jax.config.update("jax_compilation_cache_dir", os.environ["JAXPU_CACHE_DIR"])
    contender = Jaxpu(seeds, kind, 1)
    contender.run()
    # not getrusage: Linux hands its maximum down from the parent, which has PyTorch loaded
    status = Path("/proc/self/status").read_text()
    host = int(status.split("VmHWM:")[1].split()[0]) * 1024
    device = jax.devices()[0].memory_stats() or {}  # a CPU says nothing
    peak = device.get("peak_bytes_in_use", host) / 2**20
    print(json.dumps({"compile_seconds": contender.compile_seconds, "peak_mib": peak}))


def contenders(arguments: argparse.Namespace) -> list[Any]:
    """PyTorch if it is there, and jaxpu at every number of seeds on every placement."""
    on_cpu = jax.default_backend() == "cpu"
    made: list[Any] = []
    try:
        made.append(Torch(arguments.epochs, "cpu" if on_cpu else "cuda"))
    except (ImportError, RuntimeError, AssertionError) as error:
        print(f"PyTorch is left out: {error}")
    for seeds in arguments.seeds:
        kinds = ("map",) if seeds == 1 else ("map", "vmap") if on_cpu else ("vmap",)
        made += [Jaxpu(seeds, kind, arguments.epochs) for kind in kinds]
    return made


def summarise(rounds: list[dict[str, dict[str, float]]]) -> list[dict[str, Any]]:
    """Median and range of every contender over the rounds, and of its ratio to PyTorch within a round."""
    names = list(rounds[0])
    torch = next((name for name in names if name.startswith("PyTorch")), None)
    rows = []
    for name in names:
        row: dict[str, Any] = {"contender": name, "rounds": len(rounds)}
        for unit in ("per_cpu_second", "per_second"):
            values = [r[name][unit] for r in rounds]
            row[unit] = {"median": float(np.median(values)), "low": min(values), "high": max(values)}
            if torch:
                ratios = [r[name][unit] / r[torch][unit] for r in rounds]
                row[f"{unit}_to_torch"] = {
                    "median": float(np.median(ratios)),
                    "low": min(ratios),
                    "high": max(ratios),
                }
        row["auc"] = float(np.mean([r[name]["auc"] for r in rounds]))
        rows.append(row)
    return rows


def markdown(report: dict[str, Any]) -> str:
    """The table for people."""

    def cell(value: dict[str, float] | None, digits: int) -> str:
        return "" if value is None else "{median:.{d}f} [{low:.{d}f}, {high:.{d}f}]".format(d=digits, **value)

    lines = [
        f"# Benchmark {report['workload']} on {report['device']}",
        "",
        f"Made by `{report['command']}`; {report['rounds']} interleaved rounds, median [lowest, highest]; ratios are",
        f"taken within a round. One core. GEMM peak {report['gemm_gflop_per_cpu_second']:.0f} GFLOP per CPU-second;",
        f"a step is {CHOSEN.gflop} GFLOP.",
        "",
        "| contender | seed-steps per CPU-second | to PyTorch | per second of wall | to PyTorch "
        + "| share of peak | AUC |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in report["table"]:
        share = row["per_cpu_second"]["median"] * CHOSEN.gflop / report["gemm_gflop_per_cpu_second"]
        lines.append(
            f"| {row['contender']} | {cell(row['per_cpu_second'], 1)} | {cell(row.get('per_cpu_second_to_torch'), 2)} "
            f"| {cell(row['per_second'], 1)} | {cell(row.get('per_second_to_torch'), 2)} "
            f"| {100 * share:.0f} % | {row['auc']:.3f} |"
        )
    lines += ["", "| placement | compile, cold (s) | from the cache (s) | peak memory (MiB) |", "|---|---|---|---|"]
    for name, (cold, warm) in report["fresh_processes"].items():
        lines.append(
            f"| {name} | {cold['compile_seconds']:.1f} | {warm['compile_seconds']:.1f} | {warm['peak_mib']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--epochs", type=int, default=3, help="epochs a measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    parser.add_argument("--workload", choices=WORKLOADS, default=os.environ.get("JAXPU_BENCH", "W1"))
    parser.add_argument("--before", metavar="COMMIT", help="beside the jaxpu of this commit, at most seeds with map")
    parser.add_argument("--alone", nargs=2, metavar=("SEEDS", "KIND"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if WORKLOADS[arguments.workload] is not CHOSEN:  # one of the environment, so that all that it starts has it
        os.environ["JAXPU_BENCH"] = arguments.workload
        os.execv(sys.executable, [sys.executable, *sys.argv])
    if arguments.alone:
        alone(int(arguments.alone[0]), arguments.alone[1])
        return
    with checkout(arguments.before) if arguments.before else contextlib.nullcontext() as old:
        compare(arguments, old)


def compare(arguments: argparse.Namespace, old: Path | None) -> None:
    """Measure all contenders, and an earlier commit's whose files are in a folder, round by round."""
    made = contenders(arguments)
    made += [Before(old, arguments.before, max(arguments.seeds), "map", arguments.epochs)] if old else []
    for contender in made:  # warm up: allocators, lazy imports
        contender.run()
    rounds = []
    for number in range(arguments.rounds):
        rounds.append({c.name: measure(c) for c in made})
        print(f"round {number + 1} of {arguments.rounds} done", flush=True)
    fresh = {}
    on_cpu, most = jax.default_backend() == "cpu", max(arguments.seeds)
    # on an accelerator the largest alone: every compilation there counts against a few minutes
    for seeds, kind in [(1, "map"), (most, "map")] if on_cpu else [(most, "vmap")]:
        with tempfile.TemporaryDirectory() as cache:
            fresh[f"{seeds} x {kind}"] = [fresh_process(seeds, kind, cache) for _ in range(2)]
    write(arguments, summarise(rounds), fresh)


def write(arguments: argparse.Namespace, table: list[dict[str, Any]], fresh: dict[str, Any]) -> None:
    device = jax.devices()[0].device_kind
    report = {
        "workload": arguments.workload,
        "device": device if device != "cpu" else f"CPU ({os.cpu_count()} cores of a shared machine)",
        "command": " ".join(["python", *sys.argv]),
        **runs.commit(),
        "versions": runs.versions(),
        "rounds": arguments.rounds,
        "epochs": arguments.epochs,
        "gemm_gflop_per_cpu_second": gemm_peak(),
        "table": table,
        "fresh_processes": fresh,
    }
    name = device.lower().replace(" ", "-") + ("" if arguments.workload == "W1" else f"-{arguments.workload.lower()}")
    text = markdown(report)
    runs.write_text(arguments.out / f"{name}.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    runs.write_text(arguments.out / f"{name}.md", text)
    print(text)


if __name__ == "__main__":
    main()
