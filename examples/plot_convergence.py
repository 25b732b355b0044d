"""
Have the chains converged?
==========================

Four chains begin differently. The figures of ``convergence_`` say whether they agree in the end,
and if not in everything, whether they do in what is asked of a fit. The traces and the
co-assignment matrix show what they disagree about.
"""

# %%
# Two fits
# --------
# The first has the default schedule, which goes on until the chains agree or a limit of work is
# reached. The second starts from labels drawn from the prior and stops after a few sweeps: too few
# for some of the figures. Each of its chains is then asked what it would have answered by itself.
# The answers are settled if these differ little from what the fit says; if not, it warns.

from sklearn.datasets import load_iris

from skanneal import AnnealedDPMixture
from skanneal.schedules import PriorGibbs

X = load_iris().data
short = PriorGibbs(n_sweeps=20)
options = {"families": "multivariate_normal", "random_state": 0}
fits = {"default": AnnealedDPMixture(**options).fit(X)}
fits["cut"] = AnnealedDPMixture(schedule=short, n_draws=5, **options).fit(X)

for name, fit in fits.items():
    settled = fit.convergence_["settled"]
    print(f"{name}: chains agree in all figures: {fit.converged_}; answers settled: {settled}")
    for key, figure in (fit.convergence_["figures"] | fit.convergence_["answers"]).items():
        agrees = "" if figure["agrees"] else "  differs"
        print(f"  {key:24} {figure['value']:6.2f}{agrees}")

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
