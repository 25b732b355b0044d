"""What links between views bring: held-out densities of tables whose groups of columns go together.

    python benchmarks/fits/linked.py                          # 40 minutes, then cut
    python benchmarks/fits/linked.py --sets "levels 400 0.6" --seeds 3

A table has two to five groups of two to five columns: numbers, levels, or both. Each group has two
to six hidden classes of the rows. The class in a group says what that in another group is for a
share of the rows, 0, .3, .6 or .9; the others draw theirs. Groups hang together as a random tree.
Fits of `CrossCatPY` are defaults: with links, without, and with 0, 1, 4 or 8 sweeps by the links
before a draw is kept (by default 2). A line of `benchmarks/results/linked.jsonl` has the mean log
density of 1,000 held-out rows in nats, the number of links of each chain's last draw, and processor
seconds of the fit. At the end there are the paired differences from fits without links.
"""

import sys
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

from skanneal import CrossCatPY

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.lines import Lines
from harness.suite import KEYS, Suite

N_TEST = 1000
KINDS = ("numbers", "levels", "mixed")
SIZES = (150, 400, 1000, 3000)
SHARES = (0.0, 0.3, 0.6, 0.9)


def tables(folder):
    """What makes a table, by name."""
    return {
        f"{kind} {n} {share}": (kind, n, share) for kind in KINDS for n in SIZES for share in SHARES
    }


def classes(rng, n, share):
    """The hidden classes of rows in each group, and how many there are."""
    sizes = rng.integers(2, 7, size=rng.integers(2, 6))
    out = [rng.integers(sizes[0], size=n)]
    for v, size in enumerate(sizes[1:], start=1):
        other = int(rng.integers(v))
        told = rng.integers(size, size=sizes[other])[out[other]]
        out.append(np.where(rng.random(n) < share, told, rng.integers(size, size=n)))
    return out, sizes


def column(rng, labels, size, of_levels):
    """A column that has to do with these classes."""
    if not of_levels:
        centres = rng.choice([1.5, 3.0]) * rng.normal(size=size)
        return centres[labels] + rng.normal(size=len(labels))
    shares = rng.dirichlet(np.full(rng.integers(2, 5), 0.6), size=size)
    drawn = (shares[labels].cumsum(axis=1) > rng.random((len(labels), 1))).argmax(axis=1)
    return pd.Categorical(drawn.astype(str))


def measure(table, method, seed):
    """The held-out density."""
    kind, n, share = table
    rng = np.random.default_rng([seed, KINDS.index(kind), n, round(10 * share)])
    columns = {}
    for labels, size in zip(*classes(rng, n + N_TEST, share)):
        for _ in range(rng.integers(2, 6)):
            of_levels = kind == "levels" or (kind == "mixed" and rng.random() < 0.5)
            columns[f"x{len(columns)}"] = column(rng, labels, size, of_levels)
    X, began = pd.DataFrame(columns), time.process_time()
    model = method(seed, X[:n])
    spent = time.process_time() - began
    return {
        "score": round(model.score(X[n:].reset_index(drop=True)), 4),
        "links": [len(chain[-1].arrays.get("link_views", ())) for chain in model.draws_],
        "cpu": round(spent, 2),
    }


def fit(linked=True, n_sweeps=2):
    def method(seed, X):
        with patch("skanneal.chains._linked.N_SWEEPS", n_sweeps):
            return CrossCatPY(linked_views=linked, n_jobs=1, random_state=seed).fit(X)

    return method


METHODS = {
    "default": fit(),
    "independent": fit(linked=False),
    **{f"{n} sweeps": fit(n_sweeps=n) for n in (0, 1, 4, 8)},
}


def differences(path):
    """Print how far each method is ahead of independent views, by how groups hang together."""
    records = list(Lines(path, KEYS).records.values())
    last = records[-1]["version"]
    of = {(of["method"], of["set"], of["seed"]): of for of in records if of["version"] == last}
    print("method, share, tables, mean difference in nats, its standard error, worst, linked, cpu")
    for method in METHODS:
        for share in SHARES:
            pairs = [
                (line, of["independent", *at])
                for (name, *at), line in of.items()
                if name == method and float(at[0].split()[-1]) == share
                if ("independent", *at) in of
            ]
            if pairs:
                gains = np.array([one["score"] - two["score"] for one, two in pairs])
                error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
                linked = np.mean([max(one["links"]) > 0 for one, _ in pairs])
                spent = np.mean([one["cpu"] / two["cpu"] for one, two in pairs])
                print(
                    f"{method:12s} {share} {len(gains):3d} {gains.mean():+.3f} {error:.3f} "
                    f"{gains.min():+.3f} {linked:.2f} {spent:.2f}"
                )


if __name__ == "__main__":
    differences(Suite("linked", tables, {"skanneal": METHODS}, measure).run(__doc__))
