"""Pictures of a sweep: what each seed scored, how training went, and how selecting an epoch can go wrong.

Every function takes recorded frames and returns a ``matplotlib`` Figure drawn without pyplot, so calls share
nothing; ``render`` turns it into bytes that depend on the numbers alone. A frame that holds nothing to draw
raises ``NothingToShow`` with a sentence fit for the reader of a report. Titles state what is seen.
"""

from jaxpu.plots.frames import NothingToShow
from jaxpu.plots.phase import phase_diagram
from jaxpu.plots.rates import collapse_rates
from jaxpu.plots.story import artefact_run, selection_story
from jaxpu.plots.strip import final_f1_strip
from jaxpu.plots.style import render
from jaxpu.plots.trajectories import trajectories

__all__ = [
    "NothingToShow",
    "artefact_run",
    "collapse_rates",
    "final_f1_strip",
    "phase_diagram",
    "render",
    "selection_story",
    "trajectories",
]
