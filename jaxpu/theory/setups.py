"""Functions for experiments of the kind ``function``: the theory of mixup on data that are drawn, a run a seed.

Each takes a random key and options, and gives numbers, and arrays of one length along what varies.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from jaxpu.theory import mixup_loss, rademacher, random_features, rare_features
from jaxpu.theory.aggregator import flow_at

Columns = dict[str, Array]

SWITCH = 3000.0
"""A time at which one may stop mixing, chosen beforehand."""


def remainder(
    key: Array,
    *,
    n: int = 12,
    p: int = 5,
    width: int = 7,
    classes: int = 1,
    alpha: float = 1.0,
    beta: float | None = None,
) -> Columns:
    """What the expansion of the mixup loss leaves over, of a random tanh network, against the size of the data.

    Returns:
        ``order_three`` and ``order_two``: between sizes of 2^-8 and 2^-10, the slope of log |remainder|, and that
        without R₂ and R₃. Of the data as they are: ``standard``, ``first``, ``second``, ``third``, ``rest``, and
        ``rest_share``, the remainder over all that mixup adds. Along ``scale``: ``remainder``, ``beyond_first``.
    """
    keys = jax.random.split(key, 5)
    x, v = jax.random.normal(keys[0], (n, p)), jax.random.normal(keys[1], (width, p)) / jnp.sqrt(p)
    c, shape = jax.random.normal(keys[2], (width,)), (width,) if classes == 1 else (classes, width)
    w, y = jax.random.normal(keys[3], shape), jax.random.randint(keys[4], (n,), 0, max(classes, 2))
    labels = y.astype(x.dtype) if classes == 1 else jax.nn.one_hot(y, classes, dtype=x.dtype)
    centre = x.mean(axis=0)[None]

    def at(scale: Array) -> mixup_loss.Decomposition:
        rows = centre + scale * (x - centre)
        return mixup_loss.decomposition(lambda row: w @ jnp.tanh(v @ row + c), rows, labels, alpha, beta, k=16)

    scale = 2.0 ** -jnp.arange(11.0)
    found = jax.lax.map(at, scale)
    rest = found.remainder
    beyond = found.mixup - found.standard - found.first
    order = {
        name: (jnp.log2(jnp.abs(values[8])) - jnp.log2(jnp.abs(values[10]))) / 2
        for name, values in (("order_three", rest), ("order_two", beyond))
    }
    whole = {name: getattr(found, name)[0] for name in ("standard", "first", "second", "third")}
    share = jnp.abs(rest[0] / (found.mixup - found.standard)[0])
    along = {"scale": scale, "remainder": jnp.abs(rest), "beyond_first": jnp.abs(beyond)}
    return order | whole | {"rest": rest[0], "rest_share": share} | along


def complexity(
    key: Array,
    *,
    n: int = 200,
    p: int = 100,
    rank: int = 20,
    gamma: float = 0.05,
    decay: float = 0.0,
    draws: int = 4000,
) -> Columns:
    """Rademacher complexity of both classes on Gaussian rows of a low rank, with eigenvalues j^-decay.

    Returns:
        ``mixup`` and ``ball``, and what they are of their bounds: ``of_bound`` (s_γ), ``of_retentive`` (by ρ, condition
        with the square), ``of_printed``; ``ball_of_bound`` (trace), ``ball_of_printed``. And, with both classes drawn
        through one θ, how many times the ball's complexity mixup's is: θ the ``top`` eigenvector, the ``bottom`` one
        of the range, random within the ``range``, random in the ``space``.
    """
    basis_key, row_key, sign_key, theta_key = jax.random.split(key, 4)
    basis = jnp.linalg.qr(jax.random.normal(basis_key, (p, rank)))[0]
    values = jnp.arange(1.0, rank + 1) ** -decay
    x = (jax.random.normal(row_key, (n, rank)) * jnp.sqrt(values)[None]) @ basis.T
    covariance = (basis * values[None]) @ basis.T
    mixed = rademacher.mixup_complexity(sign_key, x, gamma, covariance, draws=draws).mean
    ball = rademacher.ball_complexity(sign_key, x, gamma, draws=draws).mean
    rho = rademacher.retention(rademacher.radius(gamma))
    printed = [rademacher.retentive_bound(gamma, rho, rows, n, squared=False) for rows in (rank, p)]
    drawn = jax.random.normal(theta_key, (p,))
    thetas = {"top": basis[:, 0], "bottom": basis[:, -1], "range": basis @ (basis.T @ drawn), "space": drawn}
    per_size = mixed / rademacher.radius(gamma) / (ball / jnp.sqrt(gamma))
    fair = {name: per_size * jnp.sqrt(theta @ covariance @ theta / (theta @ theta)) for name, theta in thetas.items()}
    ratios = {
        "mixup": mixed,
        "ball": ball,
        "of_bound": mixed / rademacher.mixup_bound(gamma, rank, n),
        "of_retentive": mixed / rademacher.retentive_bound(gamma, rho, rank, n),
        "of_printed": mixed / printed[0],
        "ball_of_bound": ball / rademacher.ball_bound(x, gamma),
        "ball_of_printed": ball / printed[1],
    }
    return fair | ratios | {"place": jnp.arange(1.0, rank + 1), "eigenvalue": values}


def regression(
    key: Array,
    *,
    n: int = 20,
    m: int = 500,
    d: int = 100,
    dim: int = 10,
    alpha: float = 1.0,
    label_noise: float = 0.0,
    within: bool = False,
    horizon: float = 1e9,
    test: int = 2000,
) -> Columns:
    """Gradient flow on random features, of mixed rows, of the same rows with clean labels, of plain rows, and switched.

    The target is tanh units, or ``within`` the features. Errors are normalised: 1 is that of predicting 0.

    Returns:
        Along ``time``: ``mixup``, ``clean``, ``plain``, and ``switched``, the error at the horizon of whoever switches
        from mixed to plain rows then. Of each ``_least``, ``_last``, ``_rise`` (last over least); ``mixup_time`` and
        ``switched_time``, where they are least; ``mixup_over_plain``, of the last errors; ``gain``, the share of the
        error that switching at a time of about 3,000 saves against plain rows from the start; ``late``, the error of
        never switching over the least of ``switched``; ``noise_share`` |Z|/|Ỹ*|.
        ``simulation_off``, ``lemma_off``, ``copied_off``: distances from the flow at a time of 3,000, over the way
        made, of a Runge-Kutta simulation, of the lemma, and of the lemma as copied, with θ* of the mixed labels.
    """
    rows, (phi, wanted) = _rows(
        key, n=n, m=m, d=d, dim=dim, alpha=alpha, label_noise=label_noise, within=within, test=test
    )
    made, start = {name: random_features.flow(*one) for name, one in rows.items()}, jnp.zeros(d)
    time = jnp.concatenate([jnp.zeros(1), jnp.geomspace(1.0, horizon, 91)])
    ways = {name: flow_at(one, start, time) for name, one in made.items()}
    ways["switched"] = jax.vmap(lambda at: random_features.switched(made["mixup"], made["plain"], start, at, horizon))(
        time
    )
    error = {name: random_features.normalised_error(way @ phi.T, wanted) for name, way in ways.items()}
    (features, mixed), (_, clean) = rows["mixup"], rows["clean"]
    share = {"noise_share": random_features.noise_share(mixed - clean, clean)}
    return _of_errors(time, error) | _lemma(features, mixed, clean, start) | share | {"time": time} | error


def _rows(
    key: Array, *, n: int, m: int, d: int, dim: int, alpha: float, label_noise: float, within: bool, test: int
) -> tuple[dict[str, tuple[Array, Array]], tuple[Array, Array]]:
    """Features and labels that each flow learns from, and those that errors are taken on."""
    keys = jax.random.split(key, 8)
    scale, shapes = jnp.sqrt(dim), [(5, dim), (5,), (d, dim), (d,), (d,)]
    a, b, v, shift, theta = (jax.random.normal(k, shape) for k, shape in zip(keys[:5], shapes, strict=True))

    def features(x: Array) -> Array:
        return jnp.tanh(x @ v.T / scale + (0.5 * shift)[None] * within) / jnp.sqrt(d)

    def target(x: Array) -> Array:
        return features(x) @ (3 * theta) if within else jnp.tanh(2 * x @ a.T / scale) @ b

    x, held_out = jax.random.normal(keys[5], (n, dim)), jax.random.normal(keys[6], (test, dim))
    noise_key, pair_key = jax.random.split(keys[7])
    y = target(x) + label_noise * jax.random.normal(noise_key, (n,))
    mixed = random_features.mixed_pairs(pair_key, x, y, m, alpha)
    seen = features(mixed.x)
    rows = {"mixup": (seen, mixed.y), "clean": (seen, target(mixed.x)), "plain": (features(x), y)}
    return rows, (features(held_out), target(held_out))


def _of_errors(time: Array, error: Columns) -> Columns:
    """What is said of errors along time."""
    least = {f"{name}_least": values.min() for name, values in error.items()}
    last = {f"{name}_last": values[-1] for name, values in error.items()}
    rise = {f"{name}_rise": values[-1] / values.min() for name, values in error.items() if name != "switched"}
    best = {f"{name}_time": time[error[name].argmin()] for name in ("mixup", "switched")}
    at_once, chosen = error["switched"][0], error["switched"][jnp.argmin(jnp.abs(time - SWITCH))]
    late = last["switched_last"] / least["switched_least"]
    ratios = {"gain": 1 - chosen / at_once, "late": late, "mixup_over_plain": last["mixup_last"] / last["plain_last"]}
    return least | last | rise | best | ratios


def _lemma(features: Array, mixed: Array, clean: Array, start: Array, step: float = 0.5) -> Columns:
    """How far from the flow at the time of the switch its simulation and the lemma are, over the way made."""
    at = jnp.array([SWITCH])
    there = flow_at(random_features.flow(features, mixed), start, at)[0]
    simulated = random_features.simulate(features, mixed, start, step=step, steps=round(SWITCH / step))
    lemma, copied = (random_features.lemma(features, best, mixed - clean, start, at)[0] for best in (clean, mixed))
    way = jnp.linalg.norm(there - start)
    others = {"simulation_off": simulated, "lemma_off": lemma, "copied_off": copied}
    return {name: jnp.linalg.norm(there - other) / way for name, other in others.items()}


def rare(
    key: Array,
    *,
    schedule: str = "mixup",
    guide: str = "none",
    n: int = 100,
    d: int = 400,
    m: int = 10,
    rho: float = 0.1,
    sigma: float = 0.15,
    lam: float = 0.6,
    lr: float = 0.2,
    steps: int = 6000,
    stop: float = 0.5,
    test: int = 1000,
) -> Columns:
    """Common and rare features of one way of training; a guide is a network of another start, trained with mixup.

    Args:
        key: of data, starts and test rows, the same for every way. schedule: of :data:`~rare_features.SCHEDULES`.
            guide: ``none``, ``train`` (it sees the same rows) or ``all`` (and as many others).
        n, d, rho, sigma: of :func:`~rare_features.patches`. m: width. lam, stop: of the schedule. lr, steps: of
            gradient descent. test: rows of each test set.

    Returns:
        ``common``, ``rare``, ``wrong``: Σ ⟨w, ·⟩² at the end, means of both classes; ``accuracy_common`` and
        ``accuracy_rare`` on rows with that feature alone; ``common_most``, the largest on the way; along ``step``:
        ``common_way``, ``rare_way``.
    """
    if guide not in ("none", "train", "all"):
        raise ValueError(f"guide is {guide!r}, expected 'none', 'train' or 'all'")
    draw = functools.partial(rare_features.patches, d=d, sigma=sigma)
    learn = functools.partial(rare_features.descend, lr=lr, every=max(steps // 60, 1))
    keys = jax.random.split(key, 6)
    mine, more = draw(keys[0], n, rho=rho), draw(keys[3], n, rho=rho)
    start, other = (0.01 * jax.random.normal(one, (2, m, d)) for one in keys[1:3])
    teacher = None
    if guide != "none":
        seen = mine if guide == "train" else jax.tree.map(lambda *both: jnp.concatenate(both), mine, more)
        teacher, _ = learn(other, seen.x, seen.y, rare_features.shares("mixup", steps, lam=lam))
    lams = rare_features.shares(schedule, steps, lam=lam, stop=stop)
    end, way = learn(start, mine.x, mine.y, lams, teacher)
    tests = {"common": draw(keys[4], test, rho=0.0), "rare": draw(keys[5], test, rho=1.0)}
    right = {f"accuracy_{name}": rare_features.accuracy(end, rows.x, rows.y) for name, rows in tests.items()}
    common, rare_way, wrong = (part.mean(axis=1) for part in way)
    ends = {"common": common[-1], "rare": rare_way[-1], "wrong": wrong[-1], "common_most": common.max()}
    ways = {"step": max(steps // 60, 1) * jnp.arange(len(common)), "common_way": common, "rare_way": rare_way}
    return right | ends | ways


SETUPS: dict[str, Callable[..., Columns]] = {
    "remainder": remainder,
    "complexity": complexity,
    "regression": regression,
    "rare": rare,
}
"""The functions that have a name."""
