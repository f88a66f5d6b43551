r"""r̂: how much worse a network that has learned a failure set F predicts something than one that has not.

A failure set holds rows that a trained network gets wrong. Let θ | D stand for networks trained on the training set D,
and θ | D, F for those that have seen F as well. Removing a set C from D changes what is said of F by

    r(C) = log p(F | D \ C) - log p(F | D) = log E_{θ | D, F}[p(C | θ)⁻¹] - log E_{θ | D}[p(C | θ)⁻¹],

to first order in log p(C | θ) a sum over C,

    r̂(C) = Σ_{z ∈ C} r̂(z),    r̂(z) = E_{θ | D}[log p(y | x, θ)] - E_{θ | D, F}[log p(y | x, θ)],

so that a positive r̂(z) says: without z the failures would be fewer. A mixed pair has no log-likelihood; its mixed
cross-entropy H takes the place of -log p, r̂ = E_{θ | D, F}[H] - E_{θ | D}[H]. The expectations are means over members,
networks of several seeds along a leading axis; one network is the special case without that axis.

Source: Tanno et al., "Repairing neural networks by leaving the right past behind", NeurIPS 2022, for r, and r̂ of rows.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp
from jaxtyping import Float, Int

from jaxpu.losses.surrogates import soft_cross_entropy
from jaxpu.types import Scalar, ScalarLike


def log_likelihood(logits: Float[Array, "*members n classes"], labels: Int[Array, " n"]) -> Float[Array, "*members n"]:
    """Of every row log p(y | x, θ), by every member.

    >>> round(float(log_likelihood(jnp.zeros((1, 4)), jnp.array([0]))[0]), 4)  # -log 4
    -1.3863
    """
    log_p = jax.nn.log_softmax(logits)
    return jnp.take_along_axis(log_p, jnp.broadcast_to(labels, log_p.shape[:-1])[..., None], axis=-1)[..., 0]


def mixed_cross_entropy(
    logits: Float[Array, "*members n classes"],
    labels: Int[Array, " n"],
    partner_labels: Int[Array, " n"],
    lam: Float[Array, "..."] | ScalarLike,
) -> Float[Array, "*members n"]:
    """Cross-entropy against a mixed label, H = -λ log p(yᵢ) - (1 - λ) log p(yⱼ), by every member.

    Args:
        logits: at the mixed inputs. labels, partner_labels: yᵢ and yⱼ in 0 … classes - 1.
        lam: λ, the weight of the first; one for all or one a row.

    Source: Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018.

    >>> one = mixed_cross_entropy(jnp.zeros((1, 4)), jnp.array([0]), jnp.array([3]), 0.3)
    >>> round(float(one[0]), 4)  # log 4, whatever λ
    1.3863
    """
    first, second = (log_likelihood(logits, y) for y in (labels, partner_labels))
    weight = jnp.broadcast_to(lam, first.shape)
    return -(weight * first + (1 - weight) * second)


def relative_risk(
    teacher: Float[Array, "*members n classes"],
    student: Float[Array, "*others n classes"],
    labels: Int[Array, " n"],
    partner_labels: Int[Array, " n"],
    lam: Float[Array, "..."] | ScalarLike,
) -> Float[Array, " n"]:
    """r̂ = E[H(teacher)] - E[H(student)] of mixed pairs; negative where the teacher predicts the mixed label better.

    Args:
        teacher, student: logits at the mixed inputs, of those that know F and of those that do not; each of one network
            or of several along a leading axis. labels, partner_labels, lam: as for :func:`mixed_cross_entropy`.

    >>> same = jnp.array([[0.0, 2.0]])
    >>> float(relative_risk(same, same, jnp.array([1]), jnp.array([0]), 0.5)[0])
    0.0
    """
    knows, learns = (mixed_cross_entropy(z, labels, partner_labels, lam) for z in (teacher, student))
    return _mean(knows) - _mean(learns)


def positive_unlabeled_risk(
    teacher: Float[Array, "*members n"],
    student: Float[Array, "*others n"],
    lam: Float[Array, " n"] | ScalarLike,
    soft: Float[Array, " n"] | ScalarLike,
) -> Float[Array, " n"]:
    """r̂ of labeled positives mixed with unlabeled rows, of networks with one logit a row.

    The label of the mixture is positive to the degree w = λ + (1 - λ) q, so that H = -w log p - (1 - w) log(1 - p).

    Args:
        teacher, student: logits at the mixed inputs, as for :func:`relative_risk`. lam: λ, the positive's share.
        soft: q, what stands for the label of the unlabeled row: the class prior, or a network's probability.

    >>> teacher, student = jnp.array([2.0]), jnp.array([0.0])
    >>> round(float(positive_unlabeled_risk(teacher, student, 1.0, 0.3)[0]), 4)  # log(1 + e^-2) - log 2
    -0.5662
    """
    y = jnp.asarray(lam + (1 - lam) * soft)
    knows, learns = (soft_cross_entropy(z, jnp.broadcast_to(y, z.shape)) for z in (teacher, student))
    return _mean(knows) - _mean(learns)


def example_risk(given_d: Float[Array, "*members n"], given_f: Float[Array, "*others n"]) -> Float[Array, " n"]:
    """r̂(z) of rows as they are: E_{θ | D}[log p(z | θ)] - E_{θ | D, F}[log p(z | θ)].

    Args:
        given_d, given_f: log p(z | θ) by networks trained on D, and on D and F (:func:`log_likelihood`).

    >>> example_risk(jnp.array([[-1.0, -1.0], [-3.0, -1.0]]), jnp.array([[-2.5, -0.5]])).tolist()
    [0.5, -0.5]
    """
    return _mean(jnp.asarray(given_d)) - _mean(jnp.asarray(given_f))


def removal_gain(given_d: Float[Array, "members n"], given_f: Float[Array, "others n"]) -> Scalar:
    """r(C) of a set before any approximation: log mean 1 / p(C | θ) under θ | D, F less that under θ | D.

    A mean of 1 / p rests on the members that say least of C: with few of them it is a rough number, r̂(C), the sum of
    :func:`example_risk`, a steady one.

    Args:
        given_d, given_f: log p(z | θ) of the rows of C, a line a member; p(C | θ) is the product over the rows.

    >>> float(removal_gain(jnp.array([[-1.0, -1.0]]), jnp.array([[-2.0, -1.0]])))  # one member each: Σ r̂
    1.0
    """
    inverse = [-jnp.sum(jnp.atleast_2d(log_p), axis=-1) for log_p in (given_f, given_d)]
    known, plain = (logsumexp(each) - jnp.log(each.size) for each in inverse)
    return known - plain


def failures(logits: Float[Array, "*members n classes"], labels: Int[Array, " n"]) -> Float[Array, " n"]:
    """1 on the rows of F, those whose label is not the likeliest by the mean of the members' probabilities.

    >>> failures(jnp.array([[2.0, 0.0], [0.0, 1.0]]), jnp.array([0, 0])).tolist()
    [0.0, 1.0]
    """
    p = jax.nn.softmax(logits)
    p = p.mean(axis=tuple(range(p.ndim - 2)))
    return (p.argmax(axis=-1) != labels).astype(p.dtype)


def _mean(values: Float[Array, "*members n"]) -> Float[Array, " n"]:
    """Over the members."""
    return values.mean(axis=tuple(range(values.ndim - 1)))
