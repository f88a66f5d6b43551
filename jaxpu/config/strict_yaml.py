"""YAML in which a key that is written twice is an error, not a setting lost without a word."""

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """PyYAML takes the last of equal keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key.value!r} is in line {seen[key.value]} and again in line {line}; keep one"
                )
            seen[key.value if isinstance(key, yaml.ScalarNode) else str(key)] = line
        return super().construct_mapping(node, deep=deep)


def load_yaml(text: str | bytes) -> Any:
    """Read YAML as plain data; for a person's own files.

    Raises:
        yaml.YAMLError: it is not YAML, or a mapping has a key twice.

    >>> load_yaml("seeds: 8")
    {'seeds': 8}
    >>> load_yaml("a: {b: 1, b: 2}")
    Traceback (most recent call last):
    ...
    yaml.constructor.ConstructorError: key 'b' is in line 1 and again in line 1; keep one
    """
    return yaml.load(text, _Loader)  # a SafeLoader, but for its strictness
