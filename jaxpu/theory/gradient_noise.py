"""Gradient norm and gradient noise of a mean loss, from the gradients of its examples (Zhang et al., ICML 2022).

With g_i = ∇_θ ℓ_i(θ) and ḡ their mean over N examples,

    GradNorm = |ḡ|,    Noise = √(mean_i |g_i - ḡ|²),    GradNorm² + Noise² = mean_i |g_i|².

GradNorm of N draws from an objective that is itself an expectation, as mixup's is, has a square that is too large by
Noise²/N; the product of two means over independent halves of the draws has not.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from jaxpu.types import Scalar

Tree = Any


class Gradients(NamedTuple):
    """GradNorm, Noise, and the mean squared norm of the examples' gradients, of which the squares are the parts."""

    norm: Scalar
    noise: Scalar
    mean_square: Scalar


def gradients(
    loss: Callable[[Tree, Tree], Array],
    params: Tree,
    examples: Tree,
    *,
    counts: Float[Array, " n"] | None = None,
    at_once: int = 64,
) -> Gradients:
    """GradNorm and Noise of the mean over examples of ``loss(params, example)``.

    Args:
        loss: of one example, a scalar. params: any tree. examples: a tree of arrays with one entry an example in front.
        counts: 1 for the examples that count, 0 for padding; None = all do. at_once: gradients held at a time, each as
            large as ``params``.

    Example:
        >>> found = gradients(lambda w, x: w * x, jnp.array(2.0), jnp.array([1.0, 3.0]))
        >>> float(found.norm), float(found.noise), float(found.mean_square)
        (2.0, 1.0, 5.0)
    """
    n = jax.tree.leaves(examples)[0].shape[0]
    share = jnp.ones(n) / n if counts is None else counts / jnp.maximum(counts.sum(), 1)
    mean = mean_gradient(loss, params, examples, share, at_once=at_once)

    def distances(example: Tree) -> tuple[Scalar, Scalar]:
        own = jax.grad(loss)(params, example)
        return squared_norm(jax.tree.map(jnp.subtract, own, mean)), squared_norm(own)

    apart, alone = lax.map(distances, examples, batch_size=at_once)
    return Gradients(jnp.sqrt(squared_norm(mean)), jnp.sqrt(share @ apart), share @ alone)


def mean_gradient(
    loss: Callable[[Tree, Tree], Array],
    params: Tree,
    examples: Tree,
    share: Float[Array, " n"],
    *,
    at_once: int = 1024,
) -> Tree:
    """Σ_i share_i ∇ℓ_i, by one pass over the examples that holds ``at_once`` of them.

    Args:
        loss, params, examples: as of :func:`gradients`. share: weights, of sum 1 for a mean.

    Example:
        >>> float(mean_gradient(lambda w, x: w * x, jnp.array(2.0), jnp.array([1.0, 3.0]), jnp.array([0.5, 0.5])))
        2.0
    """

    def total(params: Tree) -> Scalar:
        each = jax.checkpoint(lambda example: loss(params, example))
        return share @ lax.map(each, examples, batch_size=at_once)

    return jax.grad(total)(params)


def without_bias(first: Tree, second: Tree) -> Scalar:
    """The norm of a gradient of which two independent estimates are given, √⟨a, b⟩, with the sign of the product.

    Args:
        first, second: trees of one structure, means over independent draws.

    Example:
        >>> one = jnp.array([2.0, 1.0])
        >>> float(without_bias(one, jnp.array([2.0, 0.0]))), float(without_bias(jnp.ones(1), -jnp.ones(1)))
        (2.0, -1.0)
    """
    product = sum(map(jnp.vdot, jax.tree.leaves(first), jax.tree.leaves(second)), jnp.zeros(()))
    return jnp.sign(product) * jnp.sqrt(jnp.abs(product))


def squared_norm(tree: Tree) -> Scalar:
    """The sum of the squares of all numbers in a tree.

    Example:
        >>> float(squared_norm({"w": jnp.array([3.0, 4.0]), "b": jnp.array(1.0)}))
        26.0
    """
    return sum((jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(tree)), jnp.zeros(()))
