"""YAML as people mean it: the numbers of YAML 1.2, no key twice, no aliases.

PyYAML reads YAML 1.1, in which ``010`` is 8, ``1:30`` is 90, ``yes`` is true, and ``1e-4`` is text.
"""

import re
from typing import Any

import yaml

_TAGS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
}
"""Core schema of YAML 1.2 (10.3.2): tag -> (pattern, first characters). What fits none is text."""

_RESOLVERS: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
for _tag, (_pattern, _starts) in _TAGS.items():
    for _start in _starts:
        _RESOLVERS.setdefault(_start, []).append((f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$")))


class _Loader(yaml.SafeLoader):
    """A SafeLoader, but for its strictness: PyYAML takes the last of equal keys and expands aliases."""

    yaml_implicit_resolvers = _RESOLVERS

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            name, line = event.anchor, event.start_mark.line + 1
            raise yaml.constructor.ConstructorError(
                None, None, f"alias *{name} in line {line}: aliases are not supported; write the value out"
            )
        return super().compose_node(parent, index)

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

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node)
        try:
            return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
        except ValueError:  # written !!int, or more digits than Python reads
            raise yaml.constructor.ConstructorError(
                None, None, f"{text[:40]!r} in line {node.start_mark.line + 1} is no integer that can be read"
            ) from None


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_integer)


class _Dumper(yaml.SafeDumper):
    """Writes what :class:`_Loader` reads back."""

    yaml_implicit_resolvers = _RESOLVERS

    def ignore_aliases(self, data: Any) -> bool:
        return True


def load_yaml(text: str | bytes) -> Any:
    """Read YAML as plain data; for a person's own files.

    Raises:
        yaml.YAMLError: it is not YAML, nested too deep, or has a mapping with a key twice, or an alias.

    >>> load_yaml("{seeds: 010, lr: 1e-4, time: 1:30, answer: yes}")
    {'seeds': 10, 'lr': 0.0001, 'time': '1:30', 'answer': 'yes'}
    >>> load_yaml("a: {b: 1, b: 2}")
    Traceback (most recent call last):
    ...
    yaml.constructor.ConstructorError: key 'b' is in line 1 and again in line 1; keep one
    """
    try:
        return yaml.load(text, _Loader)  # a SafeLoader
    except RecursionError:
        raise yaml.YAMLError("nested too deep") from None


def dump_yaml(plain: Any) -> str:
    """Write plain data so that :func:`load_yaml` reads it back equal.

    >>> load_yaml(dump_yaml({"a": ["1e-4", 1e-4, "yes", True, None, "010"]}))
    {'a': ['1e-4', 0.0001, 'yes', True, None, '010']}
    """
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
