"""Tables and figures of `accelerated_images.py`."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skanneal.displays import FeatureDisplay

COLORS = {
    "auto": "C3",
    "accelerated": "C3",
    "hybrid": "C0",
    "auxiliary": "C1",
    "importance": "C2",
    "slice": "C4",
    "collapsed": "C5",
}
LINES = {"one": "-", "100": "--", "kmeans": ":", "rows": "-."}  # by start
TITLES = {
    "mnist": "MNIST, counts // 32",
    "long": "MNIST, counts // 32, the default",
    "raw": "MNIST, counts 0 to 255",
    "yale": "Yale faces 32 x 32, counts // 32",
    "cifar": "CIFAR grey 16 x 16, counts // 32",
    "logistic": "MNIST, counts // 32, logistic-normal",
}
STARTS = {"one": "one cluster", "100": "100 at random", "kmeans": "100 by k-means"}
LIGHT = ("yale", "cifar")  # counts are light; on the digits they are ink
N_PICTURES = 60


def label(one):
    return f"{one['name']}, {STARTS[one['init']]}" if one["init"] in STARTS else one["name"]


def style(one, references):
    """Colour by algorithm, line by start; references in greys."""
    if one["name"] in COLORS:
        return {"color": COLORS[one["name"]], "linestyle": LINES[one["init"]], "linewidth": 1.6}
    names = [each["name"] for each in references]
    shade = 0.75 * names.index(one["name"]) / max(1, len(names))
    return {"color": str(shade), "linestyle": LINES["rows"], "linewidth": 1.2}


def draw_figures(name, shape, runs, references, levels, folder):
    """Predictives and features against seconds, popularity, pictures."""
    draw_curves(name, runs, references, levels, folder / f"accelerated_{name}.png")
    draw_popularity(name, runs, references, folder / f"accelerated_{name}_popularity.png")
    draw_pictures(name, shape, [*runs, *references], folder / f"accelerated_{name}_features.png")


def draw_curves(name, runs, references, levels, path):
    """As Figures 2, 4 and 6, both predictives."""
    figure, axes = plt.subplots(1, 3, figsize=(16, 5), layout="constrained")
    panels = (("full", "full predictive"), ("plug_in", "plug-in predictive"), ("clusters", ""))
    for ax, (key, title) in zip(axes, panels, strict=True):
        for one in [*runs, *references]:
            again = one["seed"] > 0
            ax.plot(
                one["seconds"],
                one[key],
                label="_again" if again else label(one),
                marker="." if len(one["seconds"]) < 3 else None,
                **style(one, references),
            )
        ax.set(xscale="log", xlabel="seconds", title=title or "features")
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        if key != "clusters":
            ax.set_ylabel("mean log density per test image")
            fit_to_ends(ax, [*runs, *references], key)
            draw_levels(ax, levels, key)
    axes[2].set_yscale("log")
    axes[2].set_ylabel("occupied features")
    figure.suptitle(TITLES[name])
    handles, labels = axes[2].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small", frameon=False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def fit_to_ends(ax, curves, key):
    """From below the worst of the ends, so that beginnings do not squeeze what differs."""
    ends = np.array([one[key][-1] for one in curves])
    best = max(np.nanmax(one[key]) for one in curves)
    height = best - np.nanmin(ends)
    ax.set_ylim(best - 1.25 * height - 1, best + 0.1 * height + 1)


def draw_levels(ax, levels, key):
    """Predictors without clustering, as lines across; those off the axes are told below."""
    low, high = ax.get_ylim()
    off = []
    for place, one in zip((1, 0.66, 0.33, 0), levels, strict=False):
        told = f"{one['name']}, $\\gamma$ = {one['gamma']:g}: {one[key]:,.0f}"
        if low <= one[key] <= high:
            ax.axhline(one[key], color="0.6", linewidth=0.8)
            at = {"xy": (place, one[key]), "xycoords": ("axes fraction", "data")}
            where = {"ha": "right" if place > 0.5 else "left", "va": "bottom"}
            ax.annotate(told, **at, **where, fontsize="x-small", color="0.4")
        elif np.isfinite(one[key]):
            off.append(told)
    told = "\n".join("; ".join(off[i : i + 2]) for i in range(0, len(off), 2))
    ax.set_xlabel("seconds" + (f"\noff the axes: {told}" if off else ""), fontsize="small")


def draw_popularity(name, runs, references, path):
    """As Figures 3, 5 and 7: sizes of the features, the largest first."""
    starts = [start for start in STARTS if any(one["init"] == start for one in runs)]
    figure, axes = plt.subplots(
        1, len(starts), figsize=(1 + 4.6 * len(starts), 4), layout="constrained", squeeze=False,
        sharey=True,
    )  # fmt: skip
    for ax, start in zip(axes[0], starts, strict=True):
        of_start = [one for one in runs if one["init"] == start and one["seed"] == 0]
        for one in [*of_start, *(references if start == "one" else [])]:
            sizes = np.sort(one["sizes"])[::-1]
            options = style(one, references) | {"linestyle": "-"}
            ranks = np.arange(1, len(sizes) + 1)
            ax.plot(ranks, sizes, label=one["name"], marker=".", markersize=3, **options)
        ax.set(xscale="log", yscale="log", xlabel="feature, by size", title=STARTS[start])
        ax.set_ylim(0.8)
        ax.grid(alpha=0.3)
        ax.legend(fontsize="x-small", frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("images")
    figure.suptitle(f"Popularity of features: {TITLES[name]}")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def draw_pictures(name, shape, curves, path):
    """The largest features of each algorithm from its first start."""
    shown = [one for one in curves if one["seed"] == 0 and one["init"] in ("one", "rows")]
    across = min(3, len(shown))
    down = -(-len(shown) // across)
    figure, axes = plt.subplots(
        down, across, figsize=(6.2 * across, 4.4 * down), layout="constrained", squeeze=False
    )
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, one in zip(axes.flat, shown, strict=False):
        order = np.argsort(-one["sizes"], kind="stable")[:N_PICTURES]
        pictures = np.asarray(one["features"])[order].reshape(-1, *shape)
        sizes = np.asarray(one["sizes"])[order].round().astype(int)
        FeatureDisplay(pictures, sizes).plot(ax, cmap="gray" if name in LIGHT else "gray_r")
        ax.set_title(f"{one['name']}: {len(one['sizes']):,} features", fontsize="medium")
    figure.suptitle(TITLES[name])
    figure.savefig(path, dpi=90)
    plt.close(figure)


def markdown(rows):
    """The rows as a table, aligned."""
    names = list(rows[0])
    lines = [names, *([text_of(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    lines.insert(1, ["-" * width for width in widths])
    cells = (
        [cell.rjust(width) for cell, width in zip(line, widths, strict=True)] for line in lines
    )
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def text_of(value):
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.1f}" if abs(value) >= 1 else f"{value:.3g}"
    return str(value)
