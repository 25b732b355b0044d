"""Whether answers on which the chains of a fit agree are those of a further, longer fit.

    python benchmarks/fits/answers.py                           # simulated tables, then cut
    python benchmarks/fits/answers.py DATA_FOLDER/clustering    # and labelled tables

A table is fitted by default, and again with another seed and twice as many chains, which go on once
with a block twice as long: the reference. A line of `benchmarks/results/answers.jsonl` says what
the first fit says of each answer, and how near it is to the reference's: the adjusted Rand index
of the labels, whether the numbers of clusters are the same, and the difference of the mean log
density of rows that neither has seen. At the end is counted how often answers that were settled
were near the reference's: an index of 0.9 or more, the same number, 0.02 nats per row or two
standard errors.
"""

import collections
import json
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture
from skanneal.summary import cut_tree

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.shapes import SHAPES
from harness.suite import Suite, files, some_rows

MOST_ROWS = 3000
SIMULATED = ("overlap", "many", "levels", "mixed", "gaps", *(shape.__name__ for shape in SHAPES))
REAL = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "diabetes": load_diabetes,
}
SHAPE = {shape.__name__: shape for shape in SHAPES}
NEAR = 0.9
NATS, ERRORS = 0.02, 2.0
# Times 1 - separation: a fit hangs on its cut if the number of clusters changes within this factor.
DOUBTS = 1.0, 1.25, 1.5, 2.0, 3.0, 4.0


def simulated(name, rng):
    """A table of 300 to 2,000 rows."""
    n, d = int(rng.choice([300, 600, 1200, 2000])), int(rng.choice([2, 4, 8]))
    if name in SHAPE:
        X = SHAPE[name](rng, n, d)
        X[: n // 2, 1] += SHAPES[SHAPE[name]] * rng.random()
        return X
    k = int(rng.integers(8, 20)) if name == "many" else int(rng.integers(2, 6))
    labels = rng.integers(k, size=n)
    if name == "levels":
        chances = rng.dirichlet(np.full(4, 0.7), size=(k, d))
        return (rng.random((n, d, 1)) > chances[labels].cumsum(axis=2)).sum(axis=2).astype(float)
    wide = rng.uniform(0.5, 1.5, (k, 1))
    X = 3.0 * rng.normal(size=(k, d))[labels] + wide[labels] * rng.normal(size=(n, d))
    if name == "mixed":
        X[:, : d // 2] = np.digitize(X[:, : d // 2], [-3, 0, 3])
    if name == "gaps":
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


def sets(folder):
    found = {name: (lambda rng, name=name: simulated(name, rng)) for name in SIMULATED}
    found |= {name: (lambda rng, load=load: load().data) for name, load in REAL.items()}
    for name, path in files(folder).items() if folder is not None else ():
        found[name] = lambda rng, path=path: np.load(path)["X"].astype(float)
    return found


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def measure(table, method, seed):
    """What a fit says of its answers, and the reference's."""
    X = table(np.random.default_rng([seed, 11]))
    rows = np.random.default_rng(seed).permutation(some_rows(len(X), MOST_ROWS, seed))
    fitted, held_out = X[rows[: 4 * len(rows) // 5]], X[rows[4 * len(rows) // 5 :]]
    model = method(seed).fit(fitted)
    other = method(seed + 1000).set_params(n_chains=8, warm_start=True).fit(fitted).fit(fitted)
    gaps = model.score_samples(held_out) - other.score_samples(held_out)
    error = float(model.score_samples(held_out).std() / np.sqrt(len(held_out)))
    answers = model.convergence_["answers"]
    return {
        "shape": list(fitted.shape),
        "converged": bool(model.converged_),
        "settled": {name: answer["agrees"] for name, answer in answers.items()},
        "values": {name: round(answer["value"], 4) for name, answer in answers.items()},
        "reference_converged": bool(other.converged_),
        "n_clusters": [int(model.n_clusters_), int(other.n_clusters_)],
        "hangs": hangs(model),
        "index": round(adjusted_rand_score(model.labels_, other.labels_), 4),
        "nats": round(float(gaps.mean()), 4),
        "error": round(error, 4),
    }


def hangs(model):
    """The least of DOUBTS within which the number of clusters changes; None if none is."""
    for factor in DOUBTS:
        cuts = [1.0 - (1.0 - model.separation) * of for of in (factor, 1.0 / factor)]
        if len({int(cut_tree(model.cluster_tree_, cut).max()) for cut in cuts}) > 1:
            return factor
    return None


def near(record):
    """By answer, whether it is near that of the reference."""
    one, other = record["n_clusters"]
    return {
        "clusters": record["index"] >= NEAR,
        "number of clusters": one == other,
        "density": abs(record["nats"]) <= max(NATS, ERRORS * record["error"]),
    }


def settled(name, record):
    """Whether an answer is settled, as the fit has it: clusters only if they do not hang on where
    the tree is cut."""
    of_cut = record["settled"].get("separation", True) or name == "density"
    return of_chains(name, record) and of_cut


def of_chains(name, record):
    """Whether the chains agree on an answer, or in everything."""
    return record["settled"].get(name, record["converged"])


SUITE = Suite("answers", sets, {"skanneal": {"default": default}}, measure)


def main():
    path = SUITE.run(__doc__.splitlines()[0])
    counts = collections.Counter()
    records = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    for record in records:
        for name, is_near in near(record).items():
            counts[name, "settled" if settled(name, record) else "open", is_near] += 1
    print("doubt, settled, of these near the reference, by clusters")
    for factor in DOUBTS:
        kept = [
            near(record)["clusters"]
            for record in records
            if of_chains("clusters", record) and (record.get("hangs") or np.inf) > factor
        ]
        print(f"{factor:5} {len(kept):5} {sum(kept):5}")
    for name in ("clusters", "number of clusters", "density"):
        for said in ("settled", "open"):
            right, n = (
                counts[name, said, True],
                counts[name, said, True] + counts[name, said, False],
            )
            print(f"{name:20} {said:8} near the reference {right} of {n}")


if __name__ == "__main__":
    main()
