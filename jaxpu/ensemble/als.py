"""Weighted matrix factorisation by alternating least squares, in closed form and without a loop over instances.

The objective is Σ c_ui (r_ui - x_u · y_i)² + λ (|X|² + |Y|²). With X fixed it falls apart into one ridge
regression an instance, yᵢ = (X Cᵢ Xᵀ + λ I)⁻¹ X Cᵢ rᵢ with Cᵢ the diagonal of column i, and likewise for X. All of
them are solved at once, in blocks, so that memory is linear in n.

Source: Hu, Koren and Volinsky, "Collaborative filtering for implicit feedback datasets", ICDM 2008.
"""

import functools

import jax
import numpy as np
from jax import Array, lax
from jax import numpy as jnp
from jaxtyping import Float

from jaxpu.checks import check_positive
from jaxpu.ensemble.types import Confidence, Factors, Ratings
from jaxpu.linalg import solve_spd
from jaxpu.types import Scalar, ScalarLike

BLOCK = 128
"""Columns solved at a time: their d x d systems stay in the cache of a core."""

LONG = 512
"""Terms of the normal equations summed at a time."""


@functools.partial(jax.jit, static_argnames=("shape", "dim", "dtype"))
def start_factors(key: Array, shape: tuple[int, ...], dim: int, *, scale: float = 0.01, dtype=None) -> Factors:
    """Draw factors from N(0, scale²).

    Args:
        key: a jax random key. shape: (m, n), the shape of the ratings. dim: d. scale: the standard deviation.
        dtype: of the factors; jax's default floating type if None.

    Example:
        >>> factors = start_factors(jax.random.key(0), (3, 5), 2)
        >>> factors.x.shape, factors.y.shape
        ((2, 3), (2, 5))
    """
    m, n = shape
    of_x, of_y = jax.random.split(key)
    draw = jax.random.normal
    return Factors(scale * draw(of_x, (dim, m), dtype), scale * draw(of_y, (dim, n), dtype))


def solve_columns(
    fixed: Float[Array, "d k"],
    ratings: Float[Array, "k n"],
    confidence: Float[Array, "k n"],
    *,
    ridge: ScalarLike,
    over: str | None = None,
) -> Float[Array, "d n"]:
    """One ridge regression a column: argmin_y Σ_k c_ki (r_ki - f_k · y)² + λ |y|², for every i at once.

    Where there are fewer terms than dimensions (k < d) the k x k dual system is solved in place of the d x d one:
    y = F S (S Fᵀ F S + λ I)⁻¹ S r with S = √C, which is the same y.

    Args:
        fixed: F, the factors held fixed, shape (d, k). ratings, confidence: shape (k, n); confidence ≥ 0.
        ridge: λ > 0; may be traced, and is not checked then.
        over: name of a mesh axis over which the terms k are split, inside ``jax.shard_map``; None = all are here.

    Returns:
        The solutions, shape (d, n). A column without any confidence gives zeros.

    Raises:
        ValueError: λ ≤ 0, where the system of a column without confidence has no solution, or shapes differ.

    Example:
        >>> solve_columns(jnp.array([[1.0, 1.0]]), jnp.array([[1.0], [0.0]]), jnp.ones((2, 1)), ridge=1.0).round(3)
        Array([[0.333]], dtype=float32)
    """
    _check(fixed, ratings, confidence, ridge)
    n = ratings.shape[1]
    if n <= BLOCK:
        return _solve_block(fixed, ratings, confidence, ridge, over)
    whole = n - n % BLOCK

    def block(index: Array) -> Float[Array, "d block"]:
        r, c = (lax.dynamic_slice_in_dim(a, index * BLOCK, BLOCK, axis=1) for a in (ratings, confidence))
        return _solve_block(fixed, r, c, ridge, over)

    blocks = lax.map(block, jnp.arange(whole // BLOCK))
    solved = jnp.moveaxis(blocks, 0, 1).reshape(-1, whole)
    rest = _solve_block(fixed, ratings[:, whole:], confidence[:, whole:], ridge, over)
    return jnp.concatenate([solved, rest], axis=1)


def als_sweep(
    factors: Factors, ratings: Ratings, confidence: Confidence, *, ridge: ScalarLike, over: str | None = None
) -> Factors:
    """Solve X with Y fixed, then Y with the new X fixed; neither raises the objective.

    Args:
        factors: where to start; only y is read. ratings, confidence: shape (m, n). ridge: λ > 0.
        over: name of a mesh axis over which the instances are split, inside ``jax.shard_map``; None = all are here.
            Only the sums for X are communicated.

    Example:
        >>> ratings = jnp.array([[0.9, 0.1], [0.8, 0.2]])
        >>> factors = start_factors(jax.random.key(0), (2, 2), 2)
        >>> for _ in range(20):
        ...     factors = als_sweep(factors, ratings, jnp.ones((2, 2)), ridge=1e-3)
        >>> bool(jnp.abs(reconstruct(factors) - ratings).max() < 0.01)
        True
    """
    x = solve_columns(factors.y, ratings.T, confidence.T, ridge=ridge, over=over)
    return Factors(x, solve_columns(x, ratings, confidence, ridge=ridge))


def fold_in(x: Float[Array, "d m"], ratings: Ratings, confidence: Confidence, *, ridge: ScalarLike) -> Ratings:
    """Reconstructed ratings of new instances, R̂ = Xᵀ Y, with Y solved for them and X as fitted: induction.

    Args:
        x: fitted factors of the classifiers (d, m). ratings, confidence: of the new instances (m, n). ridge: λ.

    Example:
        >>> import numpy as np
        >>> new = jnp.array([[0.9], [0.7]])
        >>> print(np.array(fold_in(jnp.array([[1.0, 1.0]]), new, jnp.ones((2, 1)), ridge=1e-6)).round(2))
        [[0.8]
         [0.8]]
    """
    return x.T @ solve_columns(x, ratings, confidence, ridge=ridge)


def reconstruct(factors: Factors) -> Ratings:
    """R̂ = Xᵀ Y.

    Example:
        >>> reconstruct(Factors(jnp.ones((2, 1)), jnp.ones((2, 3)))).tolist()
        [[2.0, 2.0, 2.0]]
    """
    return factors.x.T @ factors.y


def factorisation_loss(factors: Factors, ratings: Ratings, confidence: Confidence, *, ridge: ScalarLike) -> Scalar:
    """Σ c (r - x · y)² + λ (|X|² + |Y|²).

    Example:
        >>> ones = jnp.ones((1, 1))
        >>> float(factorisation_loss(Factors(ones, ones), 0 * ones, ones, ridge=0.5))
        2.0
    """
    residual = ratings - reconstruct(factors)
    return jnp.sum(confidence * residual**2) + ridge * (jnp.sum(factors.x**2) + jnp.sum(factors.y**2))


def _solve_block(
    fixed: Float[Array, "d k"],
    ratings: Float[Array, "k b"],
    confidence: Float[Array, "k b"],
    ridge: ScalarLike,
    over: str | None,
) -> Float[Array, "d b"]:
    d, k = fixed.shape
    if k < d and over is None:
        root = jnp.sqrt(confidence)
        gram = root[:, None, :] * (fixed.T @ fixed)[:, :, None] * root[None, :, :]
        return fixed @ (root * solve_spd(gram, root * ratings, ridge))
    left, right = _normal_matrices(fixed, confidence), fixed @ (confidence * ratings)
    if over is not None:
        left, right = lax.psum((left, right), over)
    return solve_spd(left, right, ridge)


def _normal_matrices(fixed: Float[Array, "d k"], confidence: Float[Array, "k b"]) -> Float[Array, "d d b"]:
    """F Cᵢ Fᵀ for every column, as one matrix product with the outer products of F's columns."""
    d, k = fixed.shape
    rows, columns = np.tril_indices(d)  # they are symmetric: half of the products will do

    def product(f: Float[Array, "d p"], c: Float[Array, "p b"]) -> Float[Array, "pairs b"]:
        return (f[rows] * f[columns]) @ c

    half = product(fixed[:, : k % LONG or k], confidence[: k % LONG or k])

    def add(index: Array, total: Float[Array, "pairs b"]) -> Float[Array, "pairs b"]:
        at = (k % LONG or k) + index * LONG
        f = lax.dynamic_slice_in_dim(fixed, at, LONG, axis=1)
        return total + product(f, lax.dynamic_slice_in_dim(confidence, at, LONG, axis=0))

    if k > LONG:  # the outer products of all k columns at once would take d² k numbers
        half = lax.fori_loop(0, (k - (k % LONG or k)) // LONG, add, half)
    place = np.zeros((d, d), int)
    place[rows, columns] = place[columns, rows] = np.arange(rows.size)
    return half[place]


def _check(fixed: Array, ratings: Array, confidence: Array, ridge: ScalarLike) -> None:
    check_positive("ridge", ridge)  # without it a system can be singular
    if ratings.shape != confidence.shape or fixed.shape[1] != ratings.shape[0]:
        raise ValueError(
            f"expected factors (d, k), ratings (k, n) and confidence (k, n); got {fixed.shape}, {ratings.shape} "
            f"and {confidence.shape}: transpose both to solve for the classifiers"
        )
