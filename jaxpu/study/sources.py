"""The ratings of an experiment: drawn, from real classifiers, or from the runs of a sweep."""

import jax
import numpy as np
from jax import numpy as jnp

from jaxpu.ensemble_config import RatingsConfig
from jaxpu.study import programs
from jaxpu.study.programs import Problem


def problems(config: RatingsConfig, seeds: np.ndarray, precision: str) -> Problem:
    """Ratings, labels and labelled masks, with a leading axis of seeds."""
    if config.source == "synthetic":
        draw = programs.draw_synthetic(config.n, config.classifiers)
        rate = 0.1 if config.rate is None else config.rate
        return draw(jnp.asarray(seeds), *(jnp.asarray(v) for v in (rate, config.quality, config.labeled)))
    raise NotImplementedError(config.source)


__all__ = ["jax", "problems"]
