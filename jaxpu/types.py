"""The symbol table of the library: array types and the interfaces between its parts.

Symbols, used in every docstring: ``z`` a logit, ``p = sigmoid(z)``, ``P`` the labeled positives, ``U`` the
unlabeled rows, ``π`` the share of positives in U (the class prior), ``c`` the label frequency, ``λ`` a mixup
coefficient, ``μ`` the soft target of a mixed example. Axes: ``n`` rows, ``d`` features.
"""

from typing import TypeAlias

from jax import Array
from jax import numpy as jnp
from jaxtyping import Bool, Float, Int, Num

Scalar: TypeAlias = Float[Array, ""]
"""A scalar floating-point array."""

ScalarLike: TypeAlias = float | int | jnp.number | Num[Array, ""]
"""A number that may be traced: a Python or NumPy number, or a scalar array."""

Logits: TypeAlias = Float[Array, " n"]
"""Logits z of n rows, any floating dtype."""

ClassLogits: TypeAlias = Float[Array, "n *k"]
"""Logits of n rows: one a row for two classes, shape (n,), or one a class, shape (n, k)."""

ClassLabels: TypeAlias = Num[Array, "n *_"] | Bool[Array, "n *_"]
"""Hard labels, shape (n,), or soft ones, shape (n, k) or for two classes (n,)."""

Labeled: TypeAlias = Num[Array, " n"] | Bool[Array, " n"]
"""1 = labeled positive, 0 = unlabeled, one entry a row."""

Mask: TypeAlias = Num[Array, " n"] | Bool[Array, " n"]
"""1 = the row counts, 0 = it is padding."""

Weights: TypeAlias = Num[Array, " n"] | Bool[Array, " n"]
"""How much each row counts, at least 0."""

Rows: TypeAlias = Int[Array, " n"]
"""Row numbers into the one uploaded feature array."""
