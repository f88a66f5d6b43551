"""What every risk must withstand, ours or a user's: called by the tests of the registry and of the examples."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxpu import losses
from jaxpu.methods import options_of

ROWS = 6
Z = np.array([0.7, -1.2, 2.0, -0.3, 0.1, -2.0])
CASES = {
    "typical": (Z, [1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]),
    "padded": (Z, [1, 0, 0, 0, 1, 0], [1, 1, 1, 1, 0, 0]),
    "no labeled row": (Z, [0, 0, 0, 0, 1, 0], [1, 1, 1, 1, 0, 0]),
    "no unlabeled row": (Z, [1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]),
    "one row": (Z, [1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]),
    "padding alone": (Z, [1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]),
    "dead": (np.full(ROWS, -100.0), [1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]),
    "extreme": (100 * np.sign(Z), [1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]),
}


def check_risk(risk) -> None:
    """Refuse a risk that would spoil training; ``AssertionError`` says how.

    Its value and gradient are finite for whatever a batch may lack and however far its logits are, padding reaches
    neither, numbers are traced, and compiled, mapped and plain calls agree.
    """
    known = options_of(risk)
    options = {name: jnp.float32(value) for name, value in known.numbers.items()}
    given = {"prior": jnp.float32(0.4), "class_weights": jnp.array([1.0, 2.0]), "progress": jnp.float32(0.5)}
    given = {name: value for name, value in given.items() if name in known.context}
    partner = jnp.array([1, 0, 3, 2, 5, 4])

    def both(z, labeled, mask, options):
        sees = {"y": labeled, "mixed": losses.Mixed(z / 2, partner, 0.3)}
        sees = {name: value for name, value in sees.items() if name in known.context}
        masked = {"mask": mask} if "mask" in known.context else {}
        return jax.value_and_grad(lambda z: risk(z, labeled, **masked, **given, **sees, **options))(z)

    batches = [tuple(map(jnp.asarray, (np.float32(z), labeled, mask))) for z, labeled, mask in CASES.values()]
    try:
        program = jax.jit(both)
        together = jax.vmap(both, (0, 0, 0, None))(*map(jnp.stack, zip(*batches, strict=True)), options)
        apart = [program(*batch, options) for batch in batches]
    except (jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError, TypeError) as error:
        raise AssertionError(f"cannot be compiled with traced rows and numbers: {error}") from error
    for place, (case, (value, slope)) in enumerate(zip(CASES, apart, strict=True)):
        assert np.shape(value) == (), f"{case}: a value of shape {np.shape(value)}, expected a scalar"
        assert np.isfinite(value), f"{case}: the value is {value}"
        assert np.isfinite(slope).all(), f"{case}: the gradient is {slope}"
        np.testing.assert_allclose(together[0][place], value, rtol=1e-5, atol=1e-6, err_msg=f"{case}: vmap")
        np.testing.assert_allclose(together[1][place], slope, rtol=1e-5, atol=1e-6, err_msg=f"{case}: vmap")
        z, labeled, mask = batches[place]
        junk = program(jnp.where(mask, z, jnp.nan), jnp.where(mask, labeled, 1 - labeled), mask, options)
        np.testing.assert_array_equal(junk[0], value, err_msg=f"{case}: padding reaches the value")
        np.testing.assert_array_equal(junk[1], slope, err_msg=f"{case}: padding reaches the gradient")
    plain = functools.partial(both, options={name: float(value) for name, value in options.items()})
    np.testing.assert_allclose(plain(*batches[0])[1], apart[0][1], rtol=1e-5, atol=1e-7, err_msg="jit")
