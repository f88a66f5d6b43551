"""A scorer as a file that runs no code when it is read: skops of a list of types, or safetensors with JSON.

What may be in it is pinned here. A file that holds anything else is refused, whatever it says of itself.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxpu import config, prior
from jaxpu.config import ModelConfig
from jaxpu.fitted.scorer import AutoScorer, NetworkScorer, Scorer
from jaxpu.prior import Share
from jaxpu.runs import ResultsError
from jaxpu.runs.files import atomic_write
from jaxpu.tables import Schema
from jaxpu.tables.columns import as_dict, of_dict
from jaxpu.tables.dense import Dense

FORMAT = 1
TRUSTED = [
    "functools.partial",
    "jaxpu.tables.candidates.WeightedClassifier",
    "numpy.dtype",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.isotonic.IsotonicRegression",
    "sklearn.utils.validation.check_array",
]
"""Types that a model file may hold beside those that skops trusts itself; each part of a partial is looked up, too."""


def save(scorer: Scorer, folder: Path) -> Path:
    """Write ``model.skops`` or ``model.safetensors`` into a folder.

    Raises:
        ResultsError: it cannot be written, or holds what could not be read again: a class or network of one's own.
    """
    path = folder / f"model.{scorer.kind}"
    body = _skops(scorer) if isinstance(scorer, AutoScorer) else _safetensors(scorer)
    atomic_write(path, lambda p: p.write_bytes(body))
    for other in {"skops", "safetensors"} - {scorer.kind}:
        (folder / f"model.{other}").unlink(missing_ok=True)
    return path


def load(folder: str | Path) -> Scorer:
    """Read what :func:`save` wrote.

    Raises:
        ResultsError: there is none, it is damaged, or holds something that is not trusted; one line.
    """
    folder = Path(folder).expanduser()
    for suffix, read in (("skops", _from_skops), ("safetensors", _from_safetensors)):
        path = folder / f"model.{suffix}"
        if path.is_file():
            try:
                return read(path.read_bytes())
            except ResultsError:
                raise
            except Exception as error:  # a damaged archive raises kinds of many modules
                raise ResultsError(f"{path} is damaged, or of another version: {str(error)[:200]}; fit again") from None
    raise ResultsError(
        f"{folder} holds no model.skops or model.safetensors; make one with: jaxpu fit ... --out {folder}"
    )


def _skops(scorer: AutoScorer) -> bytes:
    from skops import io

    state = {
        "head": json.dumps(_head(scorer)),
        "members": [[m.fold, m.model, m.shift] for m in scorer.members],
        "calibration": scorer.calibration.isotonic,
    }
    body = io.dumps(state)
    if unknown := sorted(set(io.get_untrusted_types(data=body)) - set(TRUSTED)):
        raise ResultsError(f"the model holds {unknown[0]}, which is not read from files; it can be used but not saved")
    return body


def _from_skops(body: bytes) -> AutoScorer:
    from skops import io

    if unknown := sorted(set(io.get_untrusted_types(data=body)) - set(TRUSTED)):
        raise ResultsError(f"the model file holds {unknown[0]}, which jaxpu never writes; it was not read")
    state = io.loads(body, trusted=TRUSTED)
    head = _of_head(json.loads(state["head"]))
    members = tuple(prior.Member(fold, model, shift) for fold, model, shift in state["members"])
    return AutoScorer(**head, members=members, calibration=prior.Calibration(state["calibration"]))


def _safetensors(scorer: Any) -> bytes:
    from safetensors.numpy import save as dump

    if scorer.model.module is not None:
        raise ResultsError(
            "the network is a module of your own, whose code no file holds: it can be used but not saved"
        )
    arrays = {
        f"{k}{path}": np.ascontiguousarray(leaf) for k, one in enumerate(scorer.kept) for path, leaf in _leaves(one)
    }
    head = _head(scorer) | {
        "model": config.to_dict(scorer.model),
        "offset": scorer.offset,
        "dense": None if scorer.dense is None else list(scorer.dense),
        "seeds": len(scorer.kept),
    }
    return dump(arrays, metadata={"jaxpu": json.dumps(head)})


def _leaves(tree: Any, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of nested dictionaries by their paths."""
    for name, part in tree.items():
        if isinstance(part, dict):
            yield from _leaves(part, f"{path}/{name}")
        else:
            yield f"{path}/{name}", np.asarray(part)


def _from_safetensors(body: bytes) -> NetworkScorer:
    from safetensors.numpy import load as read

    raw = json.loads(json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])["__metadata__"]["jaxpu"])
    kept: list[Any] = [{"params": {}, "state": {}} for _ in range(raw["seeds"])]
    for name, array in read(body).items():
        seed, *path, last = name.split("/")
        place = kept[int(seed)]
        for part in path:
            place = place.setdefault(part, {})
        place[last] = array
    dense = raw["dense"]
    if dense is not None:
        parts: Any = (tuple(tuple(p) if isinstance(p, list) else p for p in part) for part in dense)
        dense = Dense(*parts)
    if raw["model"].get("module") is not None:
        raise ResultsError("the model file names a module to import, which jaxpu never writes; it was not read")
    model = config.validate(ModelConfig, raw["model"], "model")
    return NetworkScorer(**_of_head(raw), model=model, kept=tuple(kept), offset=raw["offset"], dense=dense)


def _head(scorer: Scorer) -> dict[str, Any]:
    schema = scorer.schema
    columns = None if schema is None else {**vars(schema), "columns": [as_dict(c) for c in schema.columns]}
    return {
        "format": FORMAT,
        "schema": columns,
        "share": scorer.share._asdict(),
        "threshold": scorer.threshold,
        "method": scorer.method,
        "detail": scorer.detail,
    }


def _of_head(raw: dict[str, Any]) -> dict[str, Any]:
    if raw["format"] != FORMAT:
        raise ResultsError(f"the model is of format {raw['format']}, expected {FORMAT}; fit again")
    schema = raw["schema"]
    if schema is not None:
        columns = tuple(of_dict(column) for column in schema["columns"])
        schema = Schema(columns, tuple(schema["identifiers"]), schema["label"], schema["named"])
    return {
        "schema": schema,
        "share": Share(**raw["share"]),
        "threshold": raw["threshold"],
        "method": raw["method"],
        "detail": raw["detail"],
    }
