"""
Clusters in a table of mixed columns with gaps
==============================================

A real table is seldom a matrix of floats. Here six analyses of 178 wines get a column of words, a
column of truth values, and gaps: one cell in ten is removed. You need not give a number
of clusters, fill gaps, or scale and encode columns.
"""

# %%
# The table
# ---------
# The intensity of the colour becomes a word, and high proline a truth value. The fit is not told
# the cultivars of the wines.

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

rng = np.random.default_rng(0)
wine, cultivar = load_wine(as_frame=True, return_X_y=True)
complete = wine.assign(
    color_intensity=pd.cut(
        wine["color_intensity"], [0, 3.5, 6, 14], labels=["pale", "red", "deep"]
    ),
    proline=wine["proline"] > 700,
).rename(columns={"proline": "high_proline", "color_intensity": "color"})
complete = complete[["alcohol", "ash", "flavanoids", "hue", "color", "high_proline"]]
is_missing = rng.random(complete.shape) < 0.1
X = complete.astype({"high_proline": "boolean"}).mask(is_missing)
X.head()

# %%
# The fit
# -------
# Every column gets a likelihood family by its values. Missing cells are integrated out.

from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture

model = AnnealedDPMixture(random_state=0).fit(X)
for family, columns in model.families_.items():
    print(f"{family}:", *X.columns[columns])
print("clusters:", model.n_clusters_)
print(f"adjusted Rand index with the cultivars: {adjusted_rand_score(cultivar, model.labels_):.2f}")

# %%
# What distinguishes them
# -----------------------
# ``describe_clusters`` says it in words. In the picture each line is a cluster. In a column of
# numbers, blue means below the mean of all wines and red above it. In the column of a level, the
# darker a cell, the larger the share of wines that have it.

from skanneal.displays import ClusterDisplay

for cluster, line in model.describe_clusters(X, n_features=3).iterrows():
    print(f"{cluster}: {line['size']} wines, {line['apart']}")
ClusterDisplay.from_estimator(model, X)

# %%
# The gaps
# --------
# ``impute`` fills a number with its posterior mean given the rest of the row. Each column's error
# is shown relative to the error of filling in the column's mean.

import matplotlib.pyplot as plt

filled = model.impute(X)
errors = {}
for column in complete.select_dtypes("float"):
    hole = X[column].isna()
    truth = complete.loc[hole, column]
    error = np.mean((filled.loc[hole, column] - truth) ** 2)
    errors[column] = np.sqrt(error / np.mean((X[column].mean() - truth) ** 2))
errors = pd.Series(errors).sort_values(ascending=False)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.barh(errors.index, errors, color="tab:blue")
ax.axvline(1, color="black", linewidth=1)
ax.set(xlabel="error of the imputed cells, relative to the column's mean")
plt.show()

# %%
# The odd cells
# -------------
# ``surprisal`` is minus the log density of each cell given the other cells of its row, as a frame
# like the rows. Here one cell gets a slipped decimal point, and stands out. ``explain_outliers``
# names it; rows and cells are compared with those of the fit.

rows = X.head(8).copy()
rows.loc[3, "flavanoids"] = 10.0 * complete.loc[3, "flavanoids"]
print(model.explain_outliers(rows, n=1, reference=X).round(1))
surprisal = model.surprisal(rows)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
image = ax.imshow(surprisal, cmap="magma_r", aspect="auto")
ax.set(ylabel="row", title="surprisal of each cell; blank: missing")
ax.set_xticks(range(rows.shape[1]), rows.columns, rotation=45, ha="right")
figure.colorbar(image, label="nats")
plt.show()
