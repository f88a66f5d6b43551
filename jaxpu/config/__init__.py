"""What an experiment is: frozen, validated dataclasses, read from YAML and written back resolved.

No jax is imported here, so that the command line answers at once. Unknown keys, misspelt names and wrong
types are errors that name the path, what was expected and the choices.
"""

from jaxpu.config.cells import Cell, check_claims, check_names, expand
from jaxpu.config.claim import STRICT, Claim, Which
from jaxpu.config.errors import ConfigError, unknown
from jaxpu.config.read import digest, dump, load, parse, put, read, to_dict, validate
from jaxpu.config.schema import (
    DataConfig,
    Experiment,
    ModelConfig,
    PlacementConfig,
    PositiveInt,
    SelectionConfig,
    Share,
    TrainingConfig,
)
from jaxpu.config.strict_yaml import load_yaml

__all__ = [
    "STRICT",
    "Cell",
    "Claim",
    "ConfigError",
    "DataConfig",
    "Experiment",
    "ModelConfig",
    "PlacementConfig",
    "PositiveInt",
    "SelectionConfig",
    "Share",
    "TrainingConfig",
    "Which",
    "check_claims",
    "check_names",
    "digest",
    "dump",
    "expand",
    "load",
    "load_yaml",
    "parse",
    "put",
    "read",
    "to_dict",
    "unknown",
    "validate",
]
