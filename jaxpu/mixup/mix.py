"""How a row and its partner become one: a convex combination, the heart of mixup, or a box of the partner's image."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Key, Num

from jaxpu.types import Rows, Scalar


def mix(
    x: Num[Array, "n *features"], partner: Rows, lam: float | Scalar | Float[Array, " n"]
) -> Float[Array, "n *features"]:
    """Mix every row with its partner, x_mix = λ x + (1 - λ) x[partner] (Zhang et al., ICLR 2018).

    λ = 1 gives x and λ = 0 the partner exactly, as long as all features are finite; fill padding with finite
    numbers.

    Args:
        x: one row an example, shape (n, ...); integers become float32, a floating dtype is kept.
        partner: indices into the batch, shape (n,).
        lam: λ, one for the batch or one a row.

    Raises:
        ValueError: ``partner`` is not of shape (n,), or ``lam`` neither a scalar nor of shape (n,).

    Example:
        >>> mix(jnp.array([[0.0], [4.0]]), jnp.array([1, 1]), 0.75).tolist()
        [[1.0], [4.0]]
    """
    x, partner, lam = jnp.asarray(x), jnp.asarray(partner), jnp.asarray(lam)
    rows = x.shape[:1]
    if partner.shape != rows:
        raise ValueError(f"partner has shape {partner.shape}, expected {rows}: one index a row of x")
    if lam.shape not in ((), rows):
        raise ValueError(f"lam has shape {lam.shape}, expected () or {rows}: one for the batch or one a row")
    weight = lam.reshape(lam.shape + (1,) * (x.ndim - 1)) if lam.ndim else lam
    mixed = weight * x + (1 - weight) * x[partner]
    return mixed.astype(x.dtype) if jnp.issubdtype(x.dtype, jnp.floating) else mixed


def cutmix(
    key: Key[Array, ""], x: Num[Array, "n h w *c"], partner: Rows, lam: float | Scalar | Float[Array, " n"]
) -> tuple[Num[Array, "n h w *c"], Float[Array, "..."]]:
    """Images with a box of their partner's, and λ, the share of the image that is their own.

    The box has the sides h √(1 - λ) and w √(1 - λ), rounded down to even numbers of pixels, and a centre that is
    uniform over the image; what reaches beyond the image is cut off, and λ becomes 1 - (area of the box) / (h w).

    Args:
        key: of the box's place. x: images, one grey value a pixel or several. partner: indices into the batch, (n,).
        lam: λ of the box as drawn, one for the batch, and one box, or one a row.

    Returns:
        The images, and λ, of the shape of ``lam``.

    Raises:
        ValueError: rows that are no images; ``partner`` or ``lam`` as :func:`mix` refuses them.

    Source: Yun et al., "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features", ICCV
    2019, and its code.

    Example:
        >>> x = jnp.stack([jnp.zeros((4, 4)), jnp.ones((4, 4))])
        >>> mixed, lam = cutmix(jax.random.key(3), x, jnp.array([1, 1]), 0.75)
        >>> float(lam), mixed[0].sum().item() / 16
        (0.75, 0.25)
    """
    x, partner, lam = jnp.asarray(x), jnp.asarray(partner), jnp.asarray(lam)
    if x.ndim not in (3, 4):
        raise ValueError(
            f"x has shape {x.shape}, expected images, (n, h, w) or (n, h, w, c): take mixup for other rows"
        )
    if partner.shape != x.shape[:1] or lam.shape not in ((), x.shape[:1]):
        mix(x, partner, lam)  # says so
    keys, side = jax.random.split(key), jnp.sqrt(1 - lam)
    rows, columns = (_covered(k, size, side) for k, size in zip(keys, x.shape[1:3], strict=True))
    box = rows[..., :, None] & columns[..., None, :]
    own = 1 - box.mean(axis=(-2, -1), dtype=lam.dtype)
    inside = box.reshape((-1, *x.shape[1:3]) + (1,) * (x.ndim - 3))
    return jnp.where(inside, x[partner], x), own


def _covered(key: Key[Array, ""], size: int, share: Float[Array, "..."]) -> Bool[Array, "... size"]:
    """Which pixels of a side a box covers that takes a share of it, wherever its centre falls."""
    half = jnp.floor(size * share).astype(jnp.int32) // 2
    centre = jax.random.randint(key, share.shape, 0, size)
    place = jnp.arange(size).reshape((1,) * share.ndim + (size,))
    return (place >= (centre - half)[..., None]) & (place < (centre + half)[..., None])
