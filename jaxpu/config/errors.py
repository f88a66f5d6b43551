"""What is said of a configuration that cannot be used."""

from jaxpu.errors import unknown

__all__ = ["ConfigError", "unknown"]


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says where, what was expected, and the choices."""
