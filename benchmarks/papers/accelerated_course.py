"""The way of fits to images, the popularity of their features, and the features themselves.

Zhang, Williamson and Perez-Cruz (2022), Figures 2 to 20: predictive densities and occupied features
against time, sizes of the features in descending order, and pictures of the most popular ones; EM
with 100 components beside.
"""

import base64
import zlib

import matplotlib.pyplot as plt
import numpy as np

from papers.cells import of_figure, shown, whole_decades

LOGISTIC = "accelerated, logistic-normal"
METHODS = ("accelerated", "hybrid", "collapsed", "EM 100, gamma 1", LOGISTIC)  # from one cluster
TEST_ROWS = 300  # on which the way is computed
PICTURES, ACROSS = 20, 10  # features that are kept
STYLES = dict(
    zip(
        METHODS,
        (
            ("black", "-"),
            ("tab:blue", "--"),
            ("tab:orange", "-."),
            ("0.6", ":"),
            ("tab:red", (0, (1, 3))),
        ),
        strict=True,
    )
)


def described(curve, sizes, features):
    """What a line keeps.

    Parameters
    ----------
    curve : list of (seconds, dict with "full", "plug_in" and "clusters")
    sizes : array-like of shape (n_clusters,)
        Members, or expected ones.
    features : ndarray of shape (n_clusters, n_columns)
        Shares of the columns; of the most popular, pictures are kept.
    """
    order = np.argsort(-np.asarray(sizes), kind="stable")
    largest = np.asarray(features)[order[:PICTURES]]
    shades = np.rint(255 * largest / largest.max(axis=1, keepdims=True)).astype(np.uint8)
    return {
        "seconds_at": [round(float(at), 3) for at, _ in curve],
        **{
            f"{name}_at": [round(float(point[name]), 2) for _, point in curve]
            for name in ("full", "plug_in", "clusters")
        },
        "sizes": [round(float(sizes[k]), 1) for k in order if sizes[k] > 0.5],
        "pictures": base64.b85encode(zlib.compress(shades.tobytes(), 9)).decode(),
    }


def pictures_of(record):
    """The kept features: (at most PICTURES, height, width), of square images."""
    shades = np.frombuffer(zlib.decompress(base64.b85decode(record["pictures"])), np.uint8)
    n = min(PICTURES, len(record["sizes"]))
    side = round((len(shades) / n) ** 0.5)
    return shades.reshape(n, side, side)


def runs_of(records):
    """Data to method to record, methods in the order of `METHODS`."""
    found, cells = {}, of_figure(records, "course")
    for cell in sorted(cells, key=lambda cell: (cell.data, METHODS.index(cell.method))):
        found.setdefault(cell.data, {})[cell.method] = cells[cell]
    return found


def course_table(records):
    """How popular features are at the end."""
    rows = []
    for data, methods in runs_of(records).items():
        for method, record in methods.items():
            sizes = np.array(record["sizes"])
            rows.append(
                (
                    data,
                    method,
                    f"{record['seconds_at'][-1]:.1f}",
                    f"{record['full_at'][-1]:.1f}",
                    f"{record['plug_in_at'][-1]:.1f}",
                    f"{len(sizes):,}",
                    f"{100 * sizes[0] / sizes.sum():.1f} %",
                    f"{100 * sizes[:10].sum() / sizes.sum():.1f} %",
                    f"{int((sizes < 1.5).sum()):,}",
                )
            )
    headings = (
        *("data", "", "seconds", "full", "plug-in", "features", "images of the most popular"),
        *("of the ten most popular", "features of one image"),
    )
    return shown(headings, rows, records, "course")


def course_picture(records):
    """Densities and numbers of features against seconds, sizes of features."""
    runs = runs_of(records)
    figure, axes = plt.subplots(
        len(runs), 4, figsize=(15, 3.4 * len(runs) + 0.4), layout="constrained", squeeze=False
    )
    panels = (
        ("full", "full density, nats per image"),
        ("plug_in", "plug-in density, nats per image"),
        ("clusters", "features"),
    )
    for row, (data, methods) in zip(axes, runs.items(), strict=True):
        for method, record in methods.items():
            color, line = STYLES[method]
            for ax, (name, _) in zip(row, panels, strict=False):
                at, values = record["seconds_at"], record[f"{name}_at"]
                ax.plot(at, values, ".", linestyle=line, color=color, markersize=4, label=method)
            ranks = np.arange(1, len(record["sizes"]) + 1)
            row[3].plot(ranks, record["sizes"], linestyle=line, color=color, label=method)
        for ax, (name, label) in zip(row, panels, strict=False):
            ax.set(xscale="log", xlabel="processor seconds", ylabel=label)
            if name == "clusters":
                ax.set_yscale("log")
                ax.set_ylim(*whole_decades(ax.get_ylim()))
            else:
                curves = [r[f"{name}_at"] for method, r in methods.items() if method != LOGISTIC]
                ends = [curve[-1] for curve in curves]
                best = max(max(curve) for curve in curves)
                height = max(best - min(ends), 1.0)
                ax.set_ylim(best - 2 * height, best + 0.1 * height)
        row[3].set(xscale="log", yscale="log", xlabel="feature, by popularity", ylabel="images")
        row[0].set_title(data, fontsize=10, loc="left")
        for ax in row:
            ax.grid(alpha=0.3)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)
    return figure


def features_picture(records):
    """The most popular features of each method; every data set begins a new line."""
    runs = []
    for data, methods in runs_of(records).items():
        runs += [(data, method, record) for method, record in methods.items()]
        runs += [None] * (len(runs) % 2)
    down = len(runs) // 2
    figure, axes = plt.subplots(down, 2, figsize=(12, 1.75 * down), layout="constrained")
    for ax in np.ravel(axes):
        ax.set_axis_off()
    for ax, run in zip(np.ravel(axes), runs, strict=True):
        if run is None:
            continue
        data, method, record = run
        pictures = np.pad(pictures_of(record), ((0, 0), (1, 1), (1, 1)), constant_values=255)
        blank = np.full((-len(pictures) % ACROSS, *pictures.shape[1:]), 255, np.uint8)
        rows = np.concatenate([pictures, blank]).reshape(-1, ACROSS, *pictures.shape[1:])
        ax.imshow(np.block([list(row) for row in rows]), cmap="gray")
        ax.set_title(f"{data}: {method}, {len(record['sizes']):,} features", fontsize=9, loc="left")
    return figure
