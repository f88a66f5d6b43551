"""Linear algebra of small dense matrices in plain array operations, which every accelerator has and ``vmap`` batches.

LAPACK stays where the numbers have always been its own, on CPU: other accelerators call a library of their vendor for
it, or have none.
"""

import numpy as np
from jax import Array, lax
from jax import numpy as jnp
from jaxtyping import Float

from jaxpu.types import ScalarLike

SWEEPS = 12
"""Over all pairs of rows; convergence is quadratic once it has begun, and 8 do for 60 rows in double precision."""


def solve_spd(matrices: Float[Array, "d d b"], right: Float[Array, "d b"], ridge: ScalarLike) -> Float[Array, "d b"]:
    """(A + λ I)⁻¹ r for many small systems, their number the last axis, by Gauss and Jordan's elimination.

    A positive definite matrix needs no pivots, so that every step is one vector operation over all systems. LAPACK,
    called for each system, is no faster; and its batched calls wait for threads of the pool that they run on, where
    two of them, side by side on two cores, have been seen to wait for each other for ever (jaxlib 0.10).
    """
    d = right.shape[0]
    shifted = matrices + (ridge * jnp.eye(d, dtype=right.dtype))[:, :, None]
    rows = jnp.arange(d)

    def eliminate(k: Array, left: Float[Array, "d columns b"]) -> Float[Array, "d columns b"]:
        pivot = left[k] / left[k, k][None]
        others = jnp.where((rows == k)[:, None], 0.0, left[:, k])
        return (left - others[:, None] * pivot[None]).at[k].set(pivot)

    return lax.fori_loop(0, d, eliminate, jnp.concatenate([shifted, right[:, None]], axis=1))[:, d]


def solve(matrix: Float[Array, "d d"], right: Float[Array, " d"]) -> Float[Array, " d"]:
    """A⁻¹ r of one positive definite matrix.

    >>> solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.ones(2)).tolist()
    [0.5, 0.25]
    """
    return lax.platform_dependent(
        matrix, right, cpu=jnp.linalg.solve, default=lambda a, r: solve_spd(a[:, :, None], r[:, None], 0.0)[:, 0]
    )


def eigh(matrix: Float[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """Eigenvalues of a symmetric matrix, ascending, and its eigenvectors, a column each.

    >>> values, _ = eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values.round(4).tolist()
    [1.0, 3.0]
    """
    return lax.platform_dependent(matrix, cpu=lambda a: tuple(jnp.linalg.eigh(a)), default=jacobi)


def jacobi(matrix: Float[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """:func:`eigh` by Jacobi's rotations, as many at once as share no row: A ← JᵀAJ, V ← VJ.

    For rows p and q: τ = (A_qq - A_pp) / 2A_pq, t = sign(τ) / (|τ| + √(1 + τ²)), the tangent of the smaller of the two
    angles that make A_pq zero.

    Source: Golub and Van Loan, "Matrix computations", 4th edition, 2013, sections 8.5.2 and 8.5.5 (parallel ordering).

    >>> values, _ = jacobi(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values.round(4).tolist()
    [1.0, 3.0]
    """
    d = matrix.shape[0]
    if d == 1:
        return matrix[0], jnp.ones_like(matrix)
    rounds = jnp.asarray(_rounds(d))

    def rotate(step: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        a, v = carry
        p, q = rounds[step % len(rounds)]
        off = a[p, q]
        tau = (a[q, q] - a[p, p]) / jnp.where(off == 0, 1, 2 * off)
        tangent = jnp.where(tau < 0, -1, 1) / (jnp.abs(tau) + jnp.sqrt(1 + tau**2))
        tangent = jnp.where(off == 0, 0, tangent).astype(a.dtype)
        cosine = 1 / jnp.sqrt(1 + tangent**2)
        sine = tangent * cosine
        turn = (
            jnp.eye(d, dtype=a.dtype).at[p, p].set(cosine).at[q, q].set(cosine).at[p, q].set(sine).at[q, p].set(-sine)
        )
        turned = jnp.matmul(turn.T, jnp.matmul(a, turn, precision="highest"), precision="highest")
        return (turned + turned.T) / 2, jnp.matmul(v, turn, precision="highest")

    a, v = lax.fori_loop(0, SWEEPS * len(rounds), rotate, (matrix, jnp.eye(d, dtype=matrix.dtype)))
    values = jnp.diagonal(a)
    order = jnp.argsort(values)
    return values[order], v[:, order]


def _rounds(d: int) -> np.ndarray:
    """All pairs of d rows in rounds of pairs that share none, (rounds, 2, pairs): a tournament in a circle.

    >>> _rounds(4).tolist()
    [[[0, 1], [3, 2]], [[0, 3], [2, 1]], [[0, 2], [1, 3]]]
    """
    players = list(range(d + d % 2))  # with one too few somebody pauses
    found = []
    for _ in range(len(players) - 1):
        half = len(players) // 2
        pairs = [pair for pair in zip(players[:half], players[: half - 1 : -1], strict=True) if max(pair) < d]
        found.append(list(zip(*pairs, strict=True)))
        players = [players[0], players[-1], *players[1:-1]]
    return np.array(found)
