"""The images of Zhang, Williamson and Perez-Cruz (2022), and what draws of a fit predict of them.

Parts: *mnist*, 60,000 digits and 10,000 for testing; *raw*, the same in all 256 shades, as in the
paper; *yale*, faces of 32 x 32 pixels, 1,810 and 604 of a permutation by seed 0, less 13 that are
black all over at this depth, which the likelihood refuses; *cifar*, grey pictures of 16 x 16
pixels, 40,000 and the last 10,000. Pixels are counts // 32, but for *raw*.

Both predictives are mean log densities per test image, multinomial coefficient included: "plug-in",
the mixture of the posterior mean features of occupied clusters by their sizes, and "full",
integrated over the features, with the new-cluster term, which is ``score``.
"""

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from papers.accelerated_references import (
    full,
    plug_in,
    posterior_means,
    predictive_log_weights,
)
from skanneal.chains import Chain

ALGORITHMS = ("accelerated", "hybrid", "auxiliary", "importance", "slice", "collapsed")
FIRST_RECORD, GROWTH = 0.25, 1.3  # seconds of the first kept draw, ratio of the next ones'
OCCUPIED = 0.5  # expected rows that make a reference's component occupied
MANY = 10**7  # sub-iterations: the seconds end a fit
DIGITS, FACES, THINGS = "mnist.npz", "yaleb_32x32.npz", "cifar10_grey16_50k.npz"
# The file, and what pixels are divided by.
PARTS = {"mnist": (DIGITS, 32), "raw": (DIGITS, 1), "yale": (FACES, 32), "cifar": (THINGS, 32)}


def load(folder, part):
    """Training and test rows of counts."""
    name, divisor = PARTS[part]
    with np.load(Path(folder) / name) as file:
        if name == DIGITS:
            train, test = file["X_train"], file["X_test"]
        elif name == FACES:
            rows = np.random.default_rng(0).permutation(len(file["X"]))
            train, test = file["X"][rows[:1810]], file["X"][rows[1810:]]
        else:
            train, test = file["X"][:40_000], file["X"][40_000:]
    train, test = train // divisor, test // divisor
    # a picture that is black all over says nothing, and a row of zeros is refused
    return train[train.any(axis=1)], test[test.any(axis=1)]


def evenly(n, most):
    """At most so many of range(n)."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


class Records:
    """Draws of a running fit at growing intervals, and its end."""

    def __init__(self):
        self.kept, self.newest, self.next = [], None, FIRST_RECORD  # the newest: a chain

    def __call__(self, _, chain):
        self.newest = chain
        if chain.seconds >= self.next:
            self.keep()
            self.next = GROWTH * chain.seconds

    def keep(self):
        self.kept.append((self.newest.seconds, drawn(self.newest)))

    def all(self):
        """What was kept, the end among it."""
        if not self.kept or self.kept[-1][0] < self.newest.seconds:
            self.keep()
        return self.kept


def drawn(chain):
    """A chain's draw, with features in place of atoms that nobody integrated out."""
    draw = chain.draw()
    for name in {"theta", "prior_theta"} & draw.keys():
        draw[name] = chain.state.likelihood.features(draw[name])
    return draw


def sizes_of(arrays):
    """Members of each cluster."""
    return next(value for name, value in arrays.items() if name.endswith("/size"))


def predict(arrays, X, indicators):
    """Mean plug-in and full log density per test row of a draw."""
    sizes = sizes_of(arrays)
    weights = predictive_log_weights(
        sizes, float(arrays["concentration"]), float(arrays["discount"])
    )
    if "theta" in arrays:  # no conjugate prior: the new cluster is the mean over draws from it
        theta, unseen = arrays["theta"], arrays["prior_theta"]
        parts = np.append(np.exp(weights[:-1]), np.full(len(unseen), 1 / len(unseen)))
        parts[len(theta) :] *= np.exp(weights[-1])
        whole = plug_in(X, np.concatenate([theta, unseen]), parts)
    else:
        gamma = float(np.ravel(arrays["multinomial/pseudo_counts"])[0])
        counts = arrays["multinomial/count"].T
        theta = posterior_means(counts, gamma)
        with_new = np.concatenate([counts, np.zeros((1, X.shape[1]))])
        whole = full(indicators, with_new, weights, gamma)
    return float(plug_in(X, theta, sizes).mean()), float(whole.mean())


class Recorded(NamedTuple):
    """A chain as `Records` asks it."""

    seconds: float
    draw: Callable
    state: object


@contextmanager
def records_of_collapsed_chains(records):
    """Their records, too: those chains report to nobody."""
    record = Chain.record

    def record_and_keep(chain):
        record(chain)
        records(0, Recorded(chain.clock.seconds, chain.draw, chain.state))

    with patch.object(Chain, "record", record_and_keep):
        yield
