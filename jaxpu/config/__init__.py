"""What an experiment is: frozen, validated dataclasses, read from YAML and written back resolved.

No jax is imported here, so that the command line answers at once. Unknown keys, misspelt names, wrong types and
settings without effect are errors that name the path, what was expected and the choices.
"""

from jaxpu.config.base import END, AnyExperiment, PlacementConfig
from jaxpu.config.cells import check_claims, claims_digest, expand, matching, runs_of
from jaxpu.config.claim import Claim, Which
from jaxpu.config.data import DataConfig
from jaxpu.config.experiment import Cell, Experiment
from jaxpu.config.grid import as_text, grid_types, point_label, points, same
from jaxpu.config.identity import digest
from jaxpu.config.read import KINDS, dump, find_config, list_configs, load, on_datasets, parse, read, written
from jaxpu.config.schema import ModelConfig, SelectionConfig, TrainingConfig
from jaxpu.config.schema import as_dict as to_dict
from jaxpu.config.strict_yaml import dump_yaml, load_yaml
from jaxpu.config.validate import flat, put, validate, value_at
from jaxpu.errors import shown, unknown
from jaxpu.selection import RuleChoice
from jaxpu.settings import STRICT, ConfigError, PositiveInt, Share

__all__ = [
    "END",
    "KINDS",
    "STRICT",
    "AnyExperiment",
    "Cell",
    "Claim",
    "ConfigError",
    "DataConfig",
    "Experiment",
    "ModelConfig",
    "PlacementConfig",
    "PositiveInt",
    "RuleChoice",
    "SelectionConfig",
    "Share",
    "TrainingConfig",
    "Which",
    "as_text",
    "check_claims",
    "claims_digest",
    "digest",
    "dump",
    "dump_yaml",
    "expand",
    "find_config",
    "flat",
    "grid_types",
    "list_configs",
    "load",
    "load_yaml",
    "matching",
    "on_datasets",
    "parse",
    "point_label",
    "points",
    "put",
    "read",
    "runs_of",
    "same",
    "shown",
    "to_dict",
    "unknown",
    "validate",
    "value_at",
    "written",
]
