"""The arrays of an ensemble. m base classifiers rate n instances; d latent dimensions.

``R`` ratings, the probability that classifier u gives instance i; ``C`` confidence, how much each rating counts;
``X`` factors of the classifiers, ``Y`` of the instances, R̂ = Xᵀ Y.
"""

from typing import NamedTuple, TypeAlias

from jax import Array
from jaxtyping import Bool, Float, Num

Ratings: TypeAlias = Float[Array, "m n"]
"""Ratings or reconstructed ratings: a row a classifier, a column an instance."""

Confidence: TypeAlias = Float[Array, "m n"]
"""Non-negative weights of the ratings."""

Instances: TypeAlias = Float[Array, " n"]
"""One number an instance."""

Labels: TypeAlias = Num[Array, " n"] | Bool[Array, " n"]
"""1 = positive, 0 = negative; not read where an instance is not labeled."""

Mask: TypeAlias = Num[Array, " n"] | Bool[Array, " n"]
"""1 = the instance's label is known."""


class Factors(NamedTuple):
    """Latent factors: ``x`` of the classifiers (d, m), ``y`` of the instances (d, n)."""

    x: Float[Array, "d m"]
    y: Float[Array, "d n"]
