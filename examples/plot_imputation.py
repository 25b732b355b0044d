"""
Gaps filled, with intervals
===========================

A filled cell without its uncertainty looks like a measurement. Here a fifth of the cells of the
iris table are removed and filled fifty times by draws from the posterior. Quantiles over the fifty
tables are intervals, which can be compared with the truth.
"""

# %%
# Blank, fit, fill
# ----------------

import numpy as np
from sklearn.datasets import load_iris

from skanneal import AnnealedDPMixture

complete = load_iris(as_frame=True).data
missing = np.random.default_rng(0).random(complete.shape) < 0.2
X = complete.mask(missing)
model = AnnealedDPMixture(n_chains=2, random_state=0).fit(X)
tables = np.array(model.impute(X, n_imputations=50))
low, middle, high = np.quantile(tables, [0.05, 0.5, 0.95], axis=0)

# %%
# Do the intervals hold?
# ----------------------
# Each bar stands at the true value of a removed cell and reaches from the 5 % to the 95 % quantile
# of its fills. Nine of ten bars should cross the line.

import matplotlib.pyplot as plt

truth = complete.to_numpy()
figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for j, ax in enumerate(axes.flat):
    rows = missing[:, j]
    inside = (low[rows, j] <= truth[rows, j]) & (truth[rows, j] <= high[rows, j])
    colors = np.where(inside, "tab:blue", "tab:red")
    ax.vlines(truth[rows, j], low[rows, j], high[rows, j], colors=colors, linewidth=1.5)
    ax.scatter(truth[rows, j], middle[rows, j], c=colors, s=12, zorder=2)
    ax.axline((truth[rows, j].mean(),) * 2, slope=1, color="black", linewidth=0.8)
    ax.set(
        title=f"{complete.columns[j]}: {inside.mean():.0%} inside", xlabel="truth", ylabel="filled"
    )
plt.show()

# %%
# What it changes
# ---------------
# The mean petal length of the flowers with wide sepals differs between the fifty tables. Its spread
# is the uncertainty that the gaps add.

wide = tables[:, :, 1] > 3.3
means = np.array([table[rows, 2].mean() for table, rows in zip(tables, wide)])
print(f"{means.mean():.2f} +- {means.std():.2f} because of the gaps")
print(f"{truth[truth[:, 1] > 3.3, 2].mean():.2f} without gaps")
