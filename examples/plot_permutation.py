"""
Permutation moves: the whole partition at once
==============================================

Gibbs sampling moves one row at a time. From one cluster of all rows it opens a second one only if a
single row by itself is more probable apart, and so it may stay where it began. A permutation move
lines up all rows along a random direction and cuts the line anew, so that one move can open many
clusters. :class:`~skanneal.PermutationDPMixture` combines both, as Liang, Jordan and Taskar (2007)
propose.
"""

# %%
# A start with one cluster
# ------------------------
# Twenty clusters in ten dimensions. Both samplers begin with all rows in one cluster and make the
# same number of sweeps of all rows. A sweep with permutation moves does up to twice the work.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skanneal import PermutationDPMixture
from skanneal.schedules import PriorGibbs

rng = np.random.default_rng(0)
centres = 2 * rng.normal(size=(20, 10))
truth = rng.integers(20, size=1000)
X = centres[truth] + rng.normal(size=(1000, 10))

known = {"covariance": 1.0, "prior_mean": 0.0, "prior_covariance": 100.0}
options = {
    "families": "known_normal",
    "hyperparameters": {"known_normal": known},
    "init": "one",
    "n_chains": 2,
    "random_state": 0,
}
fits = {}
for moves in (("gibbs",), ("gibbs", "permutation")):
    model = PermutationDPMixture(moves=moves, schedule=PriorGibbs(n_sweeps=40), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so short a fit from so poor a start
        fits[" and ".join(moves)] = model.fit(X)

# %%
# Log joint density and number of clusters against sweeps, chain by chain. The vertical line is
# where burn-in ends: before it permutation moves climb, after it the sampler is exact.

figure, axes = plt.subplots(2, 1, sharex=True, figsize=(6, 6), layout="constrained")
styles = {"gibbs": ("0.55", "--"), "gibbs and permutation": ("black", "-")}
for name, model in fits.items():
    color, line = styles[name]
    for axis, of in zip(axes, ("log_joint", "n_components")):
        for chain, values in enumerate(model.trace_[of]):
            label = None if chain else name
            axis.plot(model.trace_["sweeps"][chain], values, line, color=color, label=label)
burned_in = fits["gibbs and permutation"].trace_["burn_in"][0] == 1
end = fits["gibbs and permutation"].trace_["sweeps"][0][burned_in].max()
for axis, label in zip(axes, ("log joint density", "clusters")):
    axis.axvline(end, color="0.8", zorder=0)
    axis.set_ylabel(label)
axes[0].legend()
_ = axes[1].set_xlabel("sweeps of all rows")

# %%
# How many clusters each has found:

for name, model in fits.items():
    print(f"{name:24} {[int(k[-1]) for k in model.trace_['n_components']]} clusters of 20")

plt.show()
