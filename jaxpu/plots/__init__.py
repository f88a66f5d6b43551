"""Pictures of what was recorded: what each seed scored, how training went, and how selecting an epoch can go wrong.

Every function takes recorded frames and returns a ``matplotlib`` Figure drawn without pyplot, so calls share
nothing; ``render`` turns it into bytes that depend on the numbers alone. A frame that holds nothing to draw
raises ``NothingToShow`` with a sentence fit for the reader of a report. Titles state what is seen.
:mod:`jaxpu.plots.kinds` makes them kinds that a configuration can name.
"""

from jaxpu.plots.courses import courses
from jaxpu.plots.differences import paired_differences
from jaxpu.plots.figure import Drawn, Figure, Frames, Picture, draw
from jaxpu.plots.frames import NothingToShow
from jaxpu.plots.heat import heat_map
from jaxpu.plots.intervals import by_method, over_setting
from jaxpu.plots.kinds import figures_of
from jaxpu.plots.rates import collapse_rates
from jaxpu.plots.story import artefact_run, selection_story
from jaxpu.plots.strip import final_f1_strip
from jaxpu.plots.style import render
from jaxpu.plots.trajectories import trajectories

__all__ = [
    "Drawn",
    "Figure",
    "Frames",
    "NothingToShow",
    "Picture",
    "artefact_run",
    "by_method",
    "collapse_rates",
    "courses",
    "draw",
    "figures_of",
    "final_f1_strip",
    "heat_map",
    "over_setting",
    "paired_differences",
    "render",
    "selection_story",
    "trajectories",
]
