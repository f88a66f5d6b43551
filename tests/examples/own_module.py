"""A network of your own: any module of flax.linen, here with BatchNorm and dropout; no file of jaxpu is touched.

In YAML it is ``model: {module: "own_module:Net", arguments: {width: 16}}``.
"""

import numpy as np
from flax import linen as nn

import jaxpu


class Net(nn.Module):
    """One hidden layer. Dropout and BatchNorm need not be told whether this is training."""

    width: int = 16

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.BatchNorm(momentum=0.9)(nn.Dense(self.width)(x)))
        return nn.Dense(1)(nn.Dropout(0.2)(x))


def main():
    """Four seeds of it on two overlapping clouds, half of the positives labeled."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    x = rng.normal(size=(400, 3)) + 1.5 * y[:, None]
    s = y * (rng.random(400) < 0.5)
    settings = {"epochs": 5, "lr": 0.01, "batch_size": 64}
    return jaxpu.fit(x, s, y=y, method="vpudra_softlabel", prior=1 / 3, seeds=4, model=Net(width=8), **settings)


if __name__ == "__main__":
    print(main().summary())
