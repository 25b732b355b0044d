"""How sure a pair of components is by itself: the constants of its Bayes factor, fitted anew.

    python benchmarks/fits/by_itself.py --seeds 4               # 40 minutes, then cut

Tables are those of `random_laws.py` and `peaks.py`, of which the clusters are known. A pair of
neighbouring components of a default fit is two if most rows of one are of another cluster than most
rows of the other. A line of `benchmarks/results/by_itself.jsonl` has of each pair its log odds, the
mean square difference e of two draws' probabilities, its rows n, and whether it is two; a component
with no cluster for 0.6 of its rows is left out where two differ. At the end a logistic regression
in which both answers have the same weight, and a table the weight of the root of its number of
pairs, gives the constants of `skanneal/summary/_by_itself.py`, beside those that are in use, and
the loss of both: the mean of -log of the probability that was given to the answer.
"""

import json
import sys
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skanneal import AnnealedDPMixture
from skanneal.predictive import _clusters
from skanneal.predictive._loo import compared_rows
from skanneal.summary import _by_itself as constants
from skanneal.summary import _cluster_tree

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits import peaks, random_laws
from harness.suite import Suite

PURE = 0.6


def tables(folder):
    """Functions of a seed that draw rows and their clusters, by name."""
    laws = random_laws.tables(folder).items()
    found = {name: lambda seed, law=law: random_laws.drawn(*law, seed) for name, law in laws}
    normals = {"round": 0, "stretched": 1}.items()
    return found | {name: lambda seed, of=of: peaks.drawn(of, seed)[:2] for name, of in normals}


def default(X, seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed).fit(X)


def measure(table, method, seed):
    """The pairs of a fit's whole components."""
    X, labels = table(seed)
    asked, whole, factors = [], _cluster_tree._by_itself, _cluster_tree.log_factors

    def by_itself(odds, groups, *given):
        pairs = np.argwhere(_cluster_tree._asked(odds, groups.alive))
        asked.append([[groups.rows[k].copy() for k in pair] for pair in pairs])
        asked.append(len(groups.labels))
        return whole(odds, groups, *given)

    def log_factors(*features):
        asked.append(np.column_stack(features).tolist())
        return factors(*features)

    with (
        mock.patch.object(_cluster_tree, "_by_itself", by_itself),
        mock.patch.object(_cluster_tree, "log_factors", log_factors),
        mock.patch.object(_clusters, "beneath", lambda *given: False),
    ):
        method(X, seed)
    if len(asked) < 3:
        return {"pairs": []}
    own = labels[compared_rows(len(X), asked[1])]
    out = []
    for rows, features in zip(asked[0], asked[2]):
        counts = [np.bincount(own[of], minlength=labels.max() + 1) for of in rows]
        two = len({int(of.argmax()) for of in counts}) == 2
        if not two or min(of.max() / max(of.sum(), 1) for of in counts) > PURE:
            out.append([*np.round(features, 5).tolist(), int(two)])
    return {"pairs": out}


def count(path):
    """Print the constants that the last version's lines give, and those in use."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [line for line in lines if line["version"] == lines[-1]["version"] and line["pairs"]]
    odds, differ, n_rows, two = np.concatenate([line["pairs"] for line in lines]).T
    weights = np.concatenate(
        [np.full(len(of), len(of) ** -0.5) for of in (r["pairs"] for r in lines)]
    )
    weights[two == 1] *= weights[two == 0].sum() / weights[two == 1].sum()
    odds = np.clip(odds, -100.0, 300.0)
    features = np.column_stack(
        [
            np.sign(odds) * np.log1p(np.abs(odds)),
            np.log(np.maximum(n_rows, 6) / np.maximum(differ, 1e-4)),
        ]
    )
    fit = LogisticRegression(C=100.0).fit(
        features, two, sample_weight=weights * len(two) / weights.sum()
    )
    used = np.array([constants.CONSTANT, constants.OF_ODDS, constants.OF_ROWS])
    for name, own in (("fitted", np.r_[fit.intercept_, fit.coef_[0]]), ("in use", used)):
        said = 1.0 / (1.0 + np.exp(-(own[0] + features @ own[1:])))
        loss = log_loss(two, said, sample_weight=weights)
        print(name, own.round(3).tolist(), f"loss {loss:.4f}")
    print(f"{len(two)} pairs of {len(lines)} tables")


if __name__ == "__main__":
    count(Suite("by_itself", tables, {"skanneal": {"default": default}}, measure).run(__doc__))
