"""Charts of the statistics of a run, with matplotlib."""

import matplotlib.pyplot as plt


def histogram(bins, title, unit, amount="bytes"):
    """Draws a histogram of `Blocks.sizes` or `Blocks.lifetimes`."""
    labels = [f"{bin['low']:g}" for bin in bins]
    figure, axes = plt.subplots(figsize=(8, 2.5))
    axes.bar(range(len(bins)), [bin[amount] for bin in bins], width=0.9, align="edge")
    axes.set_xticks(range(len(bins)), labels, rotation=60, fontsize=7)
    axes.set(title=title, xlabel=f"{unit}, from", ylabel=f"estimated {amount}")
    return figure


def parts(segments, title):
    """Draws allocations of the parts of a run with their errors, and live memory."""
    figure, axes = plt.subplots(figsize=(8, 2.5))
    starts = [part["from"] for part in segments]
    widths = [part["to"] - part["from"] for part in segments]
    allocated = [part["allocated"]["bytes"] for part in segments]
    axes.bar(
        starts,
        [bytes["value"] for bytes in allocated],
        widths,
        align="edge",
        yerr=[bytes["error"] for bytes in allocated],
        edgecolor="white",
        label="allocated",
    )
    axes.step([part["to"] for part in segments], [part["live_at_end"] for part in segments], "k.-", label="live at end")
    axes.set(title=title, xlabel="seconds", ylabel="estimated bytes")
    axes.legend()
    return figure
