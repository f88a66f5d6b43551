"""Under what a claim was measured, taken from the configuration: network, learning rate, epochs, validation."""

from collections.abc import Mapping
from typing import Any

from jaxpu.config import AnyExperiment, Cell, Claim, claims_digest, expand, matching
from jaxpu.config.ensemble import EnsembleCell
from jaxpu.config.guided import GuidedCell

NONE = ""


def protocol(claim: Claim, experiment: AnyExperiment) -> dict[str, str]:
    """The settings of the cells that a claim speaks of; where they differ, all of them.

    Returns:
        network, lr, epochs and validation (share of the training part), in words; empty where there is no such thing.

    Raises:
        ValueError: a claim speaks of no cell.

    >>> from jaxpu.config import Experiment, Which
    >>> e = Experiment(grid={"training.lr": [1e-3, 3e-4]})
    >>> protocol(Claim(claim="", of=Which(), at_least=0), e)
    {'network': 'mlp 512-256-128-64', 'lr': '0.001, 0.0003', 'epochs': '40', 'validation': '10 %'}
    """
    cells = expand(experiment)
    matched = [_of(cell, claim) for which in claim.sides for cell in matching(cells, which, experiment.rules)]
    return {name: ", ".join(dict.fromkeys(one[name] for one in matched if one[name])) for name in matched[0]}


def _of(cell: Any, claim: Claim) -> dict[str, str]:
    if isinstance(cell, Cell | GuidedCell):
        chosen = [side.selection.validation for side in claim.sides if side.selection and side.selection.validation]
        held_out = cell.data.validation[:1] if isinstance(cell, Cell) else ()
        sizes = dict.fromkeys(chosen or held_out)
        return {
            "network": _network(cell.model),
            "lr": f"{cell.training.lr:g}",
            "epochs": f"{cell.training.epochs}",
            "validation": ", ".join(f"{100 * size:g} %" for size in sizes),
        }
    if isinstance(cell, EnsembleCell):
        if cell.method.is_baseline:
            return {"network": cell.method.trainer, "lr": NONE, "epochs": NONE, "validation": NONE}
        rounds = f"{cell.method.iterations}" + (f" to {cell.continue_to}" if cell.continue_to else "")
        return {"network": cell.method.trainer, "lr": f"{cell.method.lr:g}", "epochs": rounds, "validation": NONE}
    return {"network": NONE, "lr": NONE, "epochs": NONE, "validation": NONE}


def _network(model: Any) -> str:
    if model.module is not None:
        return model.module if isinstance(model.module, str) else type(model.module).__name__
    widths = {
        "linear": (),
        "mlp": model.hidden,
        "cnn": (*model.channels, *model.hidden),
        "resnet": (*model.channels, f"x{model.blocks}"),
    }.get(model.name, ())
    return " ".join(word for word in (model.name, "-".join(map(str, widths))) if word)


def changed(experiment: AnyExperiment, recorded: Mapping[str, str] | None) -> list[str]:
    """Of each claim, whether it was changed after results existed; empty words where it was not.

    Args:
        experiment: with the claims as they stand. recorded: :func:`jaxpu.config.claims_digest` of when the results were
            made; None = unknown, which says nothing.

    >>> from jaxpu.config import Experiment, Which
    >>> old, new = (Experiment(claims=(Claim(claim="a", of=Which(), at_least=b),)) for b in (0.1, 0.2))
    >>> changed(old, claims_digest(old)), changed(new, claims_digest(old))
    ([''], ['changed after results existed'])
    """
    if recorded is None:
        return ["" for _ in experiment.claims]
    said = []
    for words, digest in zip((c.claim for c in experiment.claims), claims_digest(experiment).values(), strict=True):
        known = recorded.get(words)
        if digest == known or (known is None and digest in recorded.values()):  # as it was, or in other words
            said.append("")
        else:
            said.append("added after results existed" if known is None else "changed after results existed")
    return said
