"""Positive-unlabeled learning in JAX: losses, mixup, experiments over many seeds, and failure analysis.

Importing this package costs nothing; import what you need from it:

- ``jaxpu.fit(x, s)``: scores of your own rows, and how many are positive; with ``method="nnpu"`` networks, one a seed;
- ``jaxpu.sweep(experiment)``: a whole experiment, in memory or in a folder;
- ``jaxpu.gather(folder)``: what its shards on several machines have left there;
- ``from jaxpu import losses, mixup``: pure functions, nothing but jax behind them;
- ``jaxpu run quick``: the command line.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxpu.api import Fit, fit, gather, set_up, sweep

__version__ = "0.1.0"
__all__ = ["Fit", "fit", "gather", "set_up", "sweep"]


def __getattr__(name: str) -> Any:
    """The functions of :mod:`jaxpu.api` and what :func:`fit` returns, imported when they are asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'jaxpu' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("jaxpu.fitted" if name == "Fit" else "jaxpu.api"), name)
