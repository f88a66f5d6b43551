"""The relative risk of a mixed pair: how much worse a teacher predicts its mixed label than the student does.

With F the failure set that the teacher has seen and the student has not, r̂ < 0 says that learning the pair moves the
student towards one that knows F. The expectations over a posterior are over one member here: each seed has its own
teacher and its own student.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from jaxpu.types import ScalarLike

FILTERS = ("whole", "low", "high")
"""Which pairs enter the loss: all, those with r̂ ≤ 0, those with r̂ > 0."""


def mixed_cross_entropy(
    logits: Float[Array, "n classes"],
    labels: Int[Array, " n"],
    partner_labels: Int[Array, " n"],
    lam: Float[Array, "..."] | ScalarLike,
) -> Float[Array, " n"]:
    """Cross-entropy against a mixed label, H = -λ log p(yᵢ) - (1 - λ) log p(yⱼ).

    Args:
        logits: at the mixed inputs. labels, partner_labels: yᵢ and yⱼ in 0 … classes - 1.
        lam: λ, the weight of the first; one for all or one a row.

    Source: Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018.

    >>> one = mixed_cross_entropy(jnp.zeros((1, 4)), jnp.array([0]), jnp.array([3]), 0.3)
    >>> round(float(one[0]), 4)  # log 4, whatever λ
    1.3863
    """
    log_p = jax.nn.log_softmax(logits)
    first, second = (jnp.take_along_axis(log_p, y[:, None], axis=1)[:, 0] for y in (labels, partner_labels))
    return -(lam * first + (1 - lam) * second)


def relative_risk(
    teacher: Float[Array, "n classes"],
    student: Float[Array, "n classes"],
    labels: Int[Array, " n"],
    partner_labels: Int[Array, " n"],
    lam: Float[Array, "..."] | ScalarLike,
) -> Float[Array, " n"]:
    """r̂ = H(teacher) - H(student) of mixed pairs; negative where the teacher predicts the mixed label better.

    Args:
        teacher, student: their logits at the mixed inputs. labels, partner_labels, lam: as for
            :func:`mixed_cross_entropy`.

    >>> same = jnp.array([[0.0, 2.0]])
    >>> float(relative_risk(same, same, jnp.array([1]), jnp.array([0]), 0.5)[0])
    0.0
    """
    return mixed_cross_entropy(teacher, labels, partner_labels, lam) - mixed_cross_entropy(
        student, labels, partner_labels, lam
    )


def keep(risk: Float[Array, " n"], which: Int[Array, ""] | int) -> Float[Array, " n"]:
    """1 for the pairs that a filter lets through, 0 for the others.

    Args:
        risk: r̂. which: place of the filter in :data:`FILTERS`, traced.

    >>> [keep(jnp.array([-1.0, 0.0, 1.0]), i).tolist() for i in range(3)]
    [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    low = (risk <= 0).astype(risk.dtype)
    return jnp.stack([jnp.ones_like(low), low, 1 - low])[which]
