"""
Have the chains arrived?
========================

Four chains begin differently. If they end in the same place, they say so by the figures of
``convergence_``; if not, the trace and the co-assignment matrix show what they disagree on.
"""

# %%
# Two fits
# --------
# One with the default schedule, which goes on until the chains agree or have done the work allowed;
# and one that starts from labels drawn from the prior and stops after a few sweeps.

from sklearn.datasets import load_iris

from skanneal import AnnealedDPMixture
from skanneal.schedules import PriorGibbs

X = load_iris().data
short = PriorGibbs(n_sweeps=20)
options = {"families": "multivariate_normal", "random_state": 0}
fits = {
    "default": AnnealedDPMixture(**options).fit(X),
    "cut": AnnealedDPMixture(schedule=short, n_draws=5, **options).fit(X),
}
for name, fit in fits.items():
    figures = {key: round(float(f["value"]), 2) for key, f in fit.convergence_["figures"].items()}
    print(name, "converged:", fit.converged_, figures)

# %%
# The traces
# ----------
# The log joint density against sweeps, a line per chain.

import matplotlib.pyplot as plt

from skanneal.displays import CoassignmentDisplay, TraceDisplay

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, (name, fit) in zip(axes, fits.items()):
    TraceDisplay.from_estimator(fit, x="sweeps", ax=ax)
    ax.set_xlabel(f"Sweeps ({name})")

# %%
# Which rows go together
# ----------------------
# Rows sorted by cluster. Black: together in every draw of every chain; grey: chains disagree.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, (name, fit) in zip(axes, fits.items()):
    CoassignmentDisplay.from_estimator(fit, ax=ax)
    ax.set_title(name)
plt.show()
