"""Whether clusters of all sorts are found as such, on tables whose laws are drawn at random.

    python benchmarks/fits/random_laws.py                       # 40 minutes, then cut
    python benchmarks/fits/random_laws.py --seeds 1 --sets moons rings

A set is a sort of table; the seed draws its rows (200 to 1,500), and how many clusters there are,
how large, wide, bent and far apart. Some sorts have a gap between clusters, which may be narrow;
some are normal clusters that overlap; twelve are one cluster. Three, of more rows, are such as a
wide component may lie beneath. All are turned, and their columns stretched. A line of
`benchmarks/results/random_laws.jsonl` has the adjusted Rand index of the labels and of the
components, and the numbers of clusters. At the end there are their means. By such tables it was
chosen how a border is judged, and when components are clusters.
"""

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.told_apart import normals
from harness.suite import Suite

ROWS = 200, 300, 500, 800, 1500
LEAST = 12  # rows of a cluster


def sizes(rng, n, k, evenness=5.0):
    """Of k clusters that share n rows."""
    return np.maximum((rng.dirichlet(np.full(k, evenness)) * n).astype(int), LEAST)


def arc(rng, n, radius, ends, width, centre=(0.0, 0.0)):
    """Rows about an arc between two angles, as shares of a half turn."""
    angle = np.pi * rng.uniform(*ends, n)
    return radius * np.c_[np.cos(angle), np.sin(angle)] + centre + width * rng.normal(size=(n, 2))


def moons(rng, n):
    width, first = rng.uniform(0.05, 0.13), int(n * rng.uniform(0.3, 0.7))
    lower = arc(rng, n - first, 1.0, (1, 2), width, (1.0, rng.uniform(0.2, 0.5)))
    return [arc(rng, first, 1.0, (0, 1), width), lower]


def rings(rng, n):
    """Two or three with one centre, of which the inner one may be a ball."""
    own, width = sizes(rng, n, rng.integers(2, 4)), rng.uniform(0.04, 0.1)
    found = [arc(rng, m, 0.6 * i, (0, 2), width) for i, m in enumerate(own, 1)]
    if rng.random() < 0.5:
        found[0] = 0.12 * rng.normal(size=(own[0], 2))
    return found


def spirals(rng, n):
    k, turns, width = rng.integers(2, 4), rng.uniform(0.8, 1.5), rng.uniform(0.02, 0.05)
    out = []
    for arm in range(k):
        t = np.sqrt(rng.uniform(0.03, 1.0, n // k))
        angle = 2 * np.pi * (turns * t + arm / k)
        rows = t[:, None] * np.c_[np.cos(angle), np.sin(angle)]
        out.append(rows + width * rng.normal(size=rows.shape))
    return out


def disc(rng, n):
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.random(n))
    return radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]


def flame(rng, n):
    """A disc under a bow."""
    inner, radius, gap = (
        int(n * rng.uniform(0.3, 0.6)),
        rng.uniform(0.4, 0.62),
        rng.uniform(0.1, 0.3),
    )
    angle = np.pi * rng.uniform(-0.15, 1.15, n - inner)
    far = radius + gap + rng.uniform(0.1, 0.35) * rng.random(n - inner)
    return [radius * disc(rng, inner), far[:, None] * np.c_[np.cos(angle), np.sin(angle)]]


def squares(rng, n):
    """Rectangles beside each other."""
    k, gap = rng.integers(2, 5), rng.uniform(0.1, 0.4)
    out, left = [], 0.0
    for m in sizes(rng, n, k):
        sides = rng.uniform(0.5, 2.0, 2)
        out.append(sides * rng.random((m, 2)) + [left, rng.uniform(-0.3, 0.3)])
        left += sides[0] + gap
    return out


def wings(rng, n):
    """Two squares that are dense at opposite ends, and nearly touch."""
    half = n // 2
    first = np.c_[rng.beta(1.5, 1.0, half), rng.random(half)]
    second = np.c_[rng.beta(1.0, 1.5, n - half), rng.random(n - half)]
    return [first, second + [0.0, 1.0 + rng.uniform(0.05, 0.2)]]


def bars_and_ball(rng, n):
    own, gap = sizes(rng, n, 3), rng.uniform(0.15, 0.4)
    lying = rng.random((own[0], 2)) * [4.0, 0.8]
    standing = rng.random((own[1], 2)) * [0.8, 3.0] + [0.0, 0.8 + gap]
    ball = rng.uniform(0.3, 0.5) * rng.normal(size=(own[2], 2)) + [2.8, 2.7 + gap]
    return [lying, standing, ball]


def halo(rng, n):
    """A ball within a shell."""
    half = n // 2
    shell = rng.normal(size=(n - half, 3))
    shell *= (1.0 + 0.08 * rng.normal(size=(n - half, 1))) / np.linalg.norm(
        shell, axis=1, keepdims=True
    )
    return [rng.uniform(0.1, 0.25) * rng.normal(size=(half, 3)), shell]


def links(rng, n):
    """Two rings of a chain."""
    half, width = n // 2, rng.uniform(0.04, 0.12)
    first, second = (arc(rng, m, 1.0, (0, 2), width) for m in (half, n - half))
    return [
        np.c_[first, width * rng.normal(size=half)],
        np.c_[second[:, 0] + 1.0, width * rng.normal(size=n - half), second[:, 1]],
    ]


def bars(rng, n):
    """Parallel ones."""
    width = rng.uniform(0.1, 0.2)
    return [
        np.c_[rng.uniform(-2, 2, m), i + width * rng.normal(size=m)]
        for i, m in enumerate(sizes(rng, n, rng.integers(2, 6)))
    ]


def mixed(rng, n):
    """Several shapes at once, on a lattice."""
    own = sizes(rng, n, rng.integers(3, 7), 3.0)
    kinds = (
        lambda m: rng.uniform(0.15, 0.35) * rng.normal(size=(m, 2)),
        lambda m: rng.uniform(0.6, 1.4, 2) * (rng.random((m, 2)) - 0.5),
        lambda m: arc(rng, m, 0.6, (0, 1), 0.08),
        lambda m: arc(rng, m, 0.6, (0, 2), 0.06),
        lambda m: 0.25 * rng.standard_t(4, size=(m, 2)),
        lambda m: 0.25 * (rng.gamma(2.0, size=(m, 2)) - 2.0),
    )
    places, step = rng.permutation(9)[: len(own)], rng.uniform(1.9, 2.3)
    return [
        kinds[rng.integers(len(kinds))](m) + step * np.array(divmod(place, 3))
        for m, place in zip(own, places)
    ]


def turned(rng, n):
    """Normal clusters, each with a covariance of its own."""
    k, d = int(rng.choice([2, 3, 4, 6, 10, 15])), int(rng.choice([2, 3, 5]))
    apart, out = rng.uniform(3.0, 6.0), []
    centres = rng.random((1, d))
    side = 1.4 * apart * k ** (1 / d)
    for _ in range(3000):
        centre = side * rng.random(d)
        if len(centres) < k and np.linalg.norm(centres - centre, axis=1).min() > apart:
            centres = np.r_[centres, centre[None]]
    for m, centre in zip(sizes(rng, n, len(centres)), centres):
        axes = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.exp(rng.normal(0.0, 0.35, d))
        out.append(centre + rng.normal(size=(m, d)) @ axes.T)
    return out


def overlapping(rng, n):
    """Normal clusters of which 1 to 10 rows in 100 are in error by Bayes's rule."""
    k, d = int(rng.choice([2, 3, 4, 5, 6, 10])), int(rng.choice([2, 5, 10]))
    error = float(rng.choice([0.01, 0.03, 0.05, 0.1]))
    X, labels, _ = normals(k, d, n, error, int(rng.integers(10**9)))
    return [X[labels == j] for j in np.unique(labels)]


def heavy(rng, n):
    d = int(rng.choice([2, 5]))
    return [
        rng.standard_t(5, size=(m, d)) + rng.uniform(6, 10) * rng.normal(size=d)
        for m in sizes(rng, n, rng.integers(2, 5))
    ]


def skewed(rng, n):
    d = int(rng.choice([2, 5]))
    return [
        rng.gamma(rng.uniform(1.5, 4.0), size=(m, d)) * rng.choice([-1.0, 1.0], d)
        + rng.uniform(6, 9) * rng.normal(size=d)
        for m in sizes(rng, n, rng.integers(2, 5))
    ]


def clouds(rng, n):
    """Many that overlap, each with a core and wider tails."""
    k, width, out = int(rng.integers(6, 16)), rng.uniform(0.08, 0.14), []
    freedom, centres = int(rng.choice([4, 6, 10])), rng.random((1, 2))
    for _ in range(3000):
        centre = rng.random(2) * 0.45 * np.sqrt(k)
        if len(centres) < k and np.linalg.norm(centres - centre, axis=1).min() > 0.35:
            centres = np.r_[centres, centre[None]]
    for m, centre in zip(sizes(rng, 3 * n, len(centres), 20.0), centres):
        axes = np.linalg.qr(rng.normal(size=(2, 2)))[0] * np.exp(rng.normal(0.0, 0.2, 2))
        out.append(centre + width * rng.standard_t(freedom, size=(m, 2)) @ axes.T)
    return out


def cores(rng, n):
    """Narrow ones on one wide law, whose rows belong to the nearest."""
    k, width, share = int(rng.integers(5, 13)), rng.uniform(0.12, 0.2), rng.uniform(0.2, 0.45)
    centres = rng.random((1, 2))
    for _ in range(3000):
        centre = rng.random(2) * 1.2 * np.sqrt(k)
        if len(centres) < k and np.linalg.norm(centres - centre, axis=1).min() > 0.9:
            centres = np.r_[centres, centre[None]]
    n_wide = int(share * 3 * n)
    own = centres[rng.integers(0, len(centres), 3 * n - n_wide)]
    wide = centres.mean(axis=0) + 1.2 * centres.std(axis=0) * rng.normal(size=(n_wide, 2))
    rows = np.r_[own + width * rng.normal(size=own.shape), wide]
    nearest = np.linalg.norm(rows[:, None] - centres, axis=2).argmin(axis=1)
    return [rows[nearest == j] for j in range(len(centres))]


def lattice(rng, n):
    """Sixteen to 64 equal normal ones on a lattice, of 60 to 200 rows each."""
    side, rows, apart = rng.integers(4, 9), rng.integers(60, 200), rng.uniform(3.2, 5.0)
    places = apart * np.array([(i, j) for i in range(side) for j in range(side)])
    return [place + rng.normal(size=(rows, 2)) for place in places]


def one_triangle(rng, n):
    return [np.diff(np.sort(rng.random((n, 2)), axis=1), axis=1, prepend=0.0)]


def one_wave(rng, n):
    along = rng.uniform(0.0, rng.uniform(4, 12), n)
    return [np.c_[along, np.sin(along)] + rng.uniform(0.05, 0.2) * rng.normal(size=(n, 2))]


SEVERAL = (
    *(moons, rings, spirals, flame, squares, wings, bars_and_ball, halo, links, bars, mixed),
    *(turned, overlapping, heavy, skewed),
)
ONE = {
    "one_square": lambda rng, n: [rng.random((n, 2))],
    "one_cube": lambda rng, n: [rng.random((n, int(rng.choice([3, 5]))))],
    "one_disc": lambda rng, n: [disc(rng, n)],
    "one_triangle": one_triangle,
    "one_wedge": lambda rng, n: [np.c_[rng.beta(1.5, 1.0, n), rng.random(n)]],
    "one_ring": lambda rng, n: [arc(rng, n, 1.0, (0, 2), rng.uniform(0.05, 0.2))],
    "one_crescent": lambda rng, n: [
        arc(rng, n, 1.0, (0, rng.uniform(0.6, 1.5)), rng.uniform(0.05, 0.2))
    ],
    "one_wave": one_wave,
    "one_spiral": lambda rng, n: spirals(rng, 3 * n)[:1],
    "one_t": lambda rng, n: [rng.standard_t(4, size=(n, int(rng.choice([2, 5, 10]))))],
    "one_gamma": lambda rng, n: [rng.gamma(rng.uniform(1, 3), size=(n, int(rng.choice([2, 5]))))],
    "one_normal": lambda rng, n: [rng.normal(size=(n, int(rng.choice([2, 5, 10]))))],
}


def tables(folder):
    """The laws and their numbers, by name."""
    laws = {law.__name__: law for law in SEVERAL} | ONE
    laws |= {law.__name__: law for law in (clouds, cores, lattice)}  # last, so that numbers stay
    return {name: (law, number) for number, (name, law) in enumerate(laws.items())}


def drawn(law, number, seed):
    """The rows of a law, turned and stretched, and their clusters."""
    rng = np.random.default_rng([seed, number])
    parts = law(rng, int(rng.choice(ROWS)))
    X, labels = np.concatenate(parts), np.repeat(np.arange(len(parts)), list(map(len, parts)))
    angle, order = rng.uniform(0, 2 * np.pi), rng.permutation(len(X))
    X[:, :2] @= [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return (X * np.exp(rng.normal(0.0, 0.5, X.shape[1])))[order], labels[order]


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def measure(table, method, seed):
    """Indices of the labels and of the components, and numbers of clusters."""
    X, labels = drawn(*table, seed)
    model = method(seed).fit(X)
    return {
        "ari": round(adjusted_rand_score(labels, model.labels_), 4),
        "components": round(adjusted_rand_score(labels, model.component_labels_), 4),
        "n_clusters": model.n_clusters_,
        "n_components": model.n_components_,
        "n_true_clusters": len(np.unique(labels)),
        "n_rows": len(X),
    }


def count(path):
    """Print means of the last version's lines, over several clusters and over one."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [line for line in lines if line["version"] == lines[-1]["version"]]
    print("sort, tables, index of labels, share of right numbers")
    for name in (*tables(None), "several", "one"):
        own = [
            line
            for line in lines
            if line["set"] == name or name == ("one" if line["n_true_clusters"] == 1 else "several")
        ]
        if own:
            right = np.mean([line["n_clusters"] == line["n_true_clusters"] for line in own])
            ari = np.mean([line["ari"] for line in own])
            print(f"{name:15s} {len(own):3d} {ari:.3f} {right:.2f}")


if __name__ == "__main__":
    suite = Suite("random_laws", tables, {"skanneal": {"default": default}}, measure)
    count(suite.run(__doc__))
