"""
Have the chains converged?
==========================

Four chains begin differently. The figures of ``convergence_`` say whether they agree in the end; if
not, the traces and the co-assignment matrix show what they disagree about.
"""

# %%
# Two fits
# --------
# The first has the default schedule, which goes on until the chains agree or a limit of work is
# reached. The second starts from labels drawn from the prior and stops after a few sweeps: too few,
# as it says in a warning, which is printed here.

import warnings

from sklearn.datasets import load_iris

from skanneal import AnnealedDPMixture
from skanneal.schedules import PriorGibbs

X = load_iris().data
short = PriorGibbs(n_sweeps=20)
options = {"families": "multivariate_normal", "random_state": 0}
fits = {"default": AnnealedDPMixture(**options).fit(X)}
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    fits["cut"] = AnnealedDPMixture(schedule=short, n_draws=5, **options).fit(X)
print(*(one.message for one in said), sep="\n")

for name, fit in fits.items():
    figures = {key: round(float(f["value"]), 2) for key, f in fit.convergence_["figures"].items()}
    print(name, "converged:", fit.converged_, figures)

# %%
# The traces
# ----------
# The log joint density against sweeps, with a line per chain. What is drawn faintly was on
# subsamples of the rows. Every second chain of the default begins without them.

import matplotlib.pyplot as plt

from skanneal.displays import CoassignmentDisplay, TraceDisplay

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, (name, fit) in zip(axes, fits.items()):
    TraceDisplay.from_estimator(fit, x="sweeps", ax=ax)
    ax.set_xlabel(f"Sweeps ({name})")

# %%
# Which rows go together
# ----------------------
# The rows are sorted by cluster. Two rows are dark if they are together in every draw of every
# chain; where the colour is lighter, draws disagree. The two species that overlap are one cluster,
# since no valley between them is sure, and within it the components differ from draw to draw.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, (name, fit) in zip(axes, fits.items()):
    CoassignmentDisplay.from_estimator(fit, ax=ax)
    ax.set_title(name)
plt.show()
