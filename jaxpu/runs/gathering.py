"""The results of all shards of an experiment, put together as one process leaves them; see :mod:`jaxpu.runs.shards`."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from jaxpu.config import dump, flat, load_yaml, parse
from jaxpu.errors import shown
from jaxpu.runs.files import Damaged, ResultsError, Unfinished, locked, read_sealed, write_sealed
from jaxpu.runs.inventory import check_version, gathered, named
from jaxpu.runs.job import Kind
from jaxpu.runs.provenance import read_provenance
from jaxpu.runs.shards import Shard
from jaxpu.runs.store import Folder

_NAME = re.compile(r"(0|[1-9]\d*)-of-([1-9]\d*)")


def shards_in(folder: Path) -> list[Shard]:
    """The shards below a results folder.

    Raises:
        ResultsError: there are none, or they divide the experiment differently.
    """
    entries = (folder / "shards").iterdir() if (folder / "shards").is_dir() else ()
    matches = [match for path in entries if path.is_dir() and (match := _NAME.fullmatch(path.name))]
    found = sorted(Shard(int(match[1]), int(match[2])) for match in matches if int(match[1]) < int(match[2]))
    if not found:
        raise ResultsError(f"{folder} has no shards; make them with: jaxpu run CONFIG --out {folder} --shard i/n")
    parts = sorted({shard.of for shard in found})
    if len(parts) > 1:
        raise ResultsError(
            f"{folder}/shards holds shards of {_listed(parts)} parts ({_listed(found)}); one division is gathered: "
            "move the others away"
        )
    return found


def experiment_of(folder: Path) -> Any:
    """The experiment whose shards a folder holds.

    Raises:
        ResultsError: they are of different ones, naming settings and shards, or a configuration is damaged.
    """
    by_settings: dict[str, list[Shard]] = {}
    first: dict[str, Any] = {}
    for shard in shards_in(folder):
        check_version(shard.below(folder))
        try:
            resolved = load_yaml(read_sealed(shard.below(folder) / "config.yaml"))
        except Damaged as error:
            raise ResultsError(f"shard {shard}: its config.yaml is damaged or missing ({error}); repeat it") from None
        first = first or resolved
        settings = {name: value for name, value in resolved.items() if name != "placement"}  # where runs go may differ
        by_settings.setdefault(json.dumps(settings, sort_keys=True), []).append(shard)
    if len(by_settings) > 1:
        raise ResultsError(f"{folder}: shards are of different experiments; {_differences(by_settings)}. {_REMEDY}")
    return parse(first, where=f"{folder}/shards")


_REMEDY = "Nothing was gathered: repeat these as the others were made, with --fresh, or move them away"


def _differences(by_settings: Mapping[str, Sequence[Shard]]) -> str:
    """In which settings shards differ from those of most, and which."""
    most = max(by_settings, key=lambda text: len(by_settings[text]))
    usual, told = flat(json.loads(most)), []
    for text, shards in by_settings.items():
        other = flat(json.loads(text))
        apart = [path for path in {**usual, **other} if usual.get(path) != other.get(path)]
        words = [f"{path} {shown(other.get(path))} for {shown(usual.get(path))}" for path in apart[:5]]
        told += [f"shard {_listed(shards)} has {', '.join(words)}"] if apart else []
    return "; ".join(told)


def gather(folder: Path, experiment: Any, kind: Kind) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Put the runs of all shards into their folder, as if one process had made them.

    Args:
        folder: that all shards were given. experiment: from :func:`experiment_of`. kind: what knows its runs.

    Returns:
        Runs in the order of one process, and provenance, whose seconds and epochs are sums over the shards.

    Raises:
        Unfinished: naming shards that are missing, and those that lack runs.
        ResultsError: naming shards that hold runs of others, or that are of none; nothing is gathered then.
    """
    shards, runs = shards_in(folder), kind.runs(experiment)
    wanted = [run.run_id for run in runs]
    with locked(folder):
        store = Folder(folder)
        if (foreign := store.take(wanted).foreign_runs) > 0:
            raise ResultsError(
                f"{folder} holds {foreign} runs of another configuration or of other data than its shards; nothing was "
                "gathered. Move its runs.parquet and parts away"
            )
        taken = {shard: Folder(shard.below(folder)).take(wanted) for shard in shards}
        strange, left = [], [f"shard {_listed(gone)} is missing" for gone in [_missing(shards)] if gone]
        for shard, held in taken.items():
            mine = {run.run_id for run in shard.share(runs)}
            doubled, lacking = len(held.done - mine), len(mine - held.done)
            strange += [f"shard {shard} holds {doubled} runs of other shards"] if doubled else []
            other = "of another configuration or of other data"
            strange += [f"shard {shard} holds {held.foreign_runs} runs {other}"] if held.foreign_runs else []
            left += [f"shard {shard} lacks {lacking} of its {len(mine)} runs"] if lacking else []
        if strange:
            raise ResultsError(f"{folder}: {'; '.join([*strange, *left])}. {_REMEDY}")
        if left:
            raise Unfinished(f"{folder}: {'; '.join(left)}; repeat jaxpu run --shard for these, then gather again")
        recorded, _ = gathered([held.runs for held in taken.values() if held.runs is not None], wanted)
        assert recorded is not None  # no shard lacks a run
        _take_kept(store, [Folder(shard.below(folder)) for shard in shards], wanted)
        write_sealed(folder / "config.yaml", dump(experiment).encode())
        found = named(recorded, runs)
        return found, store.finish(found, _provenance(folder, shards, len(runs)), whole=True)


def _missing(shards: Sequence[Shard]) -> list[Shard]:
    return [each for each in map(Shard, range(shards[0].of), [shards[0].of] * shards[0].of) if each not in shards]


def _take_kept(store: Folder, shards: Sequence[Folder], wanted: Sequence[str]) -> None:
    """Copy what runs have kept, each file whole."""
    known = set(wanted)
    for shard in shards:
        for path in sorted((shard.path / "parameters").glob("*.npz")):
            if path.stem in known:
                try:
                    write_sealed(store.path / "parameters" / path.name, read_sealed(path))
                except Damaged as error:
                    raise ResultsError(f"{path} is damaged ({error}); repeat its shard, then gather again") from None


def _provenance(folder: Path, shards: Sequence[Shard], runs: int) -> Callable[[], dict[str, Any]]:
    """The provenance of the whole: the first shard's, with sums, and all values where shards differ."""
    each = [found for shard in shards if (found := read_provenance(shard.below(folder))) is not None]
    if not each:
        raise ResultsError(f"{folder}: no shard has a whole provenance.json; repeat one of them, then gather again")

    def build() -> dict[str, Any]:
        total = dict(each[0], runs=runs, shards=len(shards), dirty=any(one.get("dirty") for one in each))
        total["command"] = re.sub(r" --shard[ =]\S+", "", str(total["command"]))
        total["started"] = min(one["started"] for one in each)
        for name in ("epochs", "slot_epochs", "programs", "compile_seconds", "run_seconds"):
            total[name] = round(sum(one[name] for one in each), 2)
        total["compile_seconds_each"] = [seconds for one in each for seconds in one["compile_seconds_each"]]
        for name in ("device", "commit"):
            total[name] = ", ".join(dict.fromkeys(str(one[name]) for one in each)) if each[0][name] else None
        places = dict.fromkeys(json.dumps(place) for one in each for place in one["placement"])
        return total | {"placement": [json.loads(place) for place in places]}

    return build


def _listed(values: Sequence[Any]) -> str:
    """Some values in a row, the last after "and".

    >>> _listed([1, 2, 3])
    '1, 2 and 3'
    """
    return " and ".join(filter(None, [", ".join(map(str, values[:-1])), str(values[-1])]))
