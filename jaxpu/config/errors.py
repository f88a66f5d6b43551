"""What is said of a configuration that cannot be used."""

from jaxpu.errors import lines_of, shown, unknown

__all__ = ["ConfigError", "lines_of", "shown", "unknown"]


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says where, what was expected, and the choices."""
