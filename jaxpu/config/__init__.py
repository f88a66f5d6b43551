"""What an experiment is: frozen, validated dataclasses, read from YAML and written back resolved.

No jax is imported here, so that the command line answers at once. Unknown keys, misspelt names and wrong
types are errors that name the path, what was expected and the choices.
"""

from jaxpu.config.cells import Cell, check_claims, expand
from jaxpu.config.claim import Claim, Which
from jaxpu.config.errors import ConfigError
from jaxpu.config.read import digest, dump, load, parse, put, to_dict
from jaxpu.config.schema import (
    DataConfig,
    Experiment,
    ModelConfig,
    PlacementConfig,
    SelectionConfig,
    TrainingConfig,
    named_method,
)

__all__ = [
    "Cell",
    "Claim",
    "ConfigError",
    "DataConfig",
    "Experiment",
    "ModelConfig",
    "PlacementConfig",
    "SelectionConfig",
    "TrainingConfig",
    "Which",
    "check_claims",
    "digest",
    "dump",
    "expand",
    "load",
    "named_method",
    "parse",
    "put",
    "to_dict",
]
