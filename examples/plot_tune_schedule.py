"""
Tuning the annealing schedule
=============================

A schedule says how the subsample grows. It is a nested estimator, so ``GridSearchCV`` tunes it like
any other hyperparameter, by the held-out log density.
"""

# %%
# Twelve clusters of categorical answers
# --------------------------------------
# Each of 1200 people answers 20 questions, each with four answers; people of one cluster tend to
# answer alike.

import numpy as np

rng = np.random.default_rng(0)
n_rows, n_columns, n_levels, n_clusters = 1200, 20, 4, 12
probabilities = rng.dirichlet(np.full(n_levels, 0.5), size=(n_clusters, n_columns))
truth = rng.integers(n_clusters, size=n_rows)
cumulative = probabilities[truth].cumsum(axis=2)
X = (rng.random((n_rows, n_columns, 1)) > cumulative[:, :, :-1]).sum(axis=2)

# %%
# The grid
# --------
# Schedules with the same number of sweeps do the same work. Each entry of the list has a schedule
# and the values to try for its parameters.

from sklearn.model_selection import GridSearchCV

from skanneal import AnnealedDPMixture
from skanneal.schedules import LinearAnneal, PriorGibbs, SequentialGibbs

n_sweeps = [4, 8, 16, 32]
schedules = [PriorGibbs(), SequentialGibbs(), LinearAnneal()]
search = GridSearchCV(
    AnnealedDPMixture(n_chains=1, random_state=0),
    [{"schedule": [schedule], "schedule__n_sweeps": n_sweeps} for schedule in schedules],
    cv=4,
).fit(X)
print(search.best_params_)

# %%
# Held-out score against work
# ---------------------------

import matplotlib.pyplot as plt

results = search.cv_results_
names = np.array([type(schedule).__name__ for schedule in results["param_schedule"]])
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name in dict.fromkeys(names):
    chosen = names == name
    ax.errorbar(
        n_sweeps,
        results["mean_test_score"][chosen],
        results["std_test_score"][chosen] / np.sqrt(search.n_splits_),
        marker="o",
        capsize=3,
        label=name,
    )
ax.set_xscale("log", base=2)
ax.set_xticks(n_sweeps, n_sweeps)
ax.set(xlabel="sweeps", ylabel="held-out log density per row")
ax.legend()
plt.show()
