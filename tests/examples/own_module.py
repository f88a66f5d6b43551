"""A network of your own: any module of flax.linen, here with BatchNorm and dropout; no file of jaxpu is touched.

Run it: ``python own_module.py``. In YAML it is ``model: {module: "own_module:Net", arguments: {width: 16}}``.
"""

from flax import linen as nn

from jaxpu import config


class Net(nn.Module):
    """One hidden layer. Whether this is training need not be said: Dropout and BatchNorm are told."""

    width: int = 16

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.BatchNorm(momentum=0.9)(nn.Dense(self.width)(x)))
        return nn.Dense(1)(nn.Dropout(0.2)(x))


EXPERIMENT = config.parse(
    {
        "data": {"name": "gaussians", "options": {"n": 150, "d": 3, "separation": 3.0}, "c": 0.5},
        "model": {"module": Net(width=16)},
        "training": {"epochs": 4, "batch_size": 48, "lr": 0.01},
        "methods": ["vpudra_softlabel"],
        "seeds": 2,
    }
)
