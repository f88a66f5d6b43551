"""Eight seeds on rows of your own, of which some positives are labeled: five lines, no file.

With true labels for some rows, give them as ``y``: then metrics and verdicts are there, and training never sees them.
"""

import numpy as np

import jaxpu


def rows():
    """Two overlapping clouds; half of the positives are labeled, so a third of the unlabeled rows are positive."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    return rng.normal(size=(600, 4)) + 2.0 * y[:, None], y * (rng.random(600) < 0.5), y


def main(seeds=8):
    """All that it takes."""
    x, s, _ = rows()
    fitted = jaxpu.fit(x, s, method="nnpu", prior=1 / 3, seeds=seeds, model="linear", epochs=40, lr=0.01, batch_size=64)
    print(fitted.verdicts)
    return fitted


if __name__ == "__main__":
    print(main().predict_proba(rows()[0])[:5])
