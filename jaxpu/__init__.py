"""Positive-unlabelled learning in JAX: losses, mixup, multi-seed sweeps and failure analysis.

Importing this package costs nothing; import what you need from it:

- ``from jaxpu import losses, mixup``: pure functions, nothing but jax behind them;
- ``from jaxpu import train, sweep``: one run, or thousands;
- ``jaxpu run configs/quick.yaml``: the command line.
"""

__version__ = "0.1.0"
