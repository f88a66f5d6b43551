"""A figure of your own, on the page: one file, none of jaxpu.

figures: [{kind: "own_figure:f1_by_seed", caption: "F1 of every seed."}]
"""

from matplotlib.figure import Figure


def f1_by_seed(frames, *, height=2.5):
    """A dot a seed; the title says what it shows, and is what is read out to who cannot see it."""
    rows = frames.of_default(frames.selected)
    figure = Figure(figsize=(6, height))
    axis = figure.subplots()
    axis.plot(rows["seed"].to_list(), rows["f1"].to_list(), "o")
    axis.set(xlabel="seed", ylabel="F1")
    figure.suptitle(f"F1 of {rows.height} seeds is at least {rows['f1'].min():.2f}")
    return figure
