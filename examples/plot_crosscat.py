"""
Which columns depend on which
=============================

A table of many columns seldom has one clustering of its rows: wages and rent may hang together,
wages and shoe size may not. Cross-categorization partitions the columns into *views* and clusters
the rows anew in each, so that which columns depend on each other is part of the answer.
"""

# %%
# The table
# ---------
# 569 tumours with thirty measurements: ten properties of the cells' nuclei, each as a mean, a
# standard error and a worst value. Beside them go four columns that have nothing to do with
# tumours, two of which have to do with each other. One cell in ten is taken out.

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

rng = np.random.default_rng(0)
cells, benign = load_breast_cancer(as_frame=True, return_X_y=True)
cells = np.log(cells + 1e-3)  # sizes: what matters is their ratios
ward = rng.choice(["north", "south", "west"], size=len(cells), p=[0.5, 0.3, 0.2])
complete = cells.assign(
    ward=ward,
    nurse=np.where(rng.random(len(cells)) < 0.9, np.char.add("of ", ward), "floating"),
    door=rng.integers(1, 7, size=len(cells)),
    temperature=rng.normal(20, 1, size=len(cells)),
)
is_missing = rng.random(complete.shape) < 0.1
X = complete.mask(is_missing)
X.iloc[:5, 27:]

# %%
# The fit
# -------
# Four chains. The point estimate's views:

from skanneal import CrossCatPY

model = CrossCatPY(n_chains=4, random_state=0).fit(X)
for v in range(model.n_views_):
    columns = X.columns[model.view_labels_ == v]
    print(f"{model.row_labels_[v].max() + 1:2d} clusters:", ", ".join(columns))

# %%
# Dependence
# ----------
# Chains that agree on a pair of columns say 0 or 1; what they do not agree on lies between. Radius,
# perimeter and area measure the same thing; the wards and their nurses keep to themselves.

from skanneal.displays import DependenceDisplay, ViewsDisplay

DependenceDisplay.from_estimator(model)

# %%
# ``mutual_information`` says how much, in nats or, normalised, as the correlation that normal
# variables with the same information would have.

information = model.mutual_information(normalized=True)
strength = pd.DataFrame(information, index=X.columns, columns=X.columns)
print(strength.loc["worst radius"].drop("worst radius").nlargest(5).round(2))
print(strength.loc["ward"].drop("ward").nlargest(2).round(2))

# %%
# The table, view by view
# -----------------------
# Each panel is a view, its rows sorted by their cluster in that view; grey cells are missing. What
# is one noisy table in the order of the file falls into blocks.

ViewsDisplay.from_estimator(model, X)

# %%
# Questions
# ---------
# What does a nurse say about the ward? ``sample`` with ``given`` answers by drawing rows that have
# the given cells; ``score_samples`` would give their density. And the table's gaps are filled from
# what depends on them: their error, relative to filling in each column's mean.

for nurse in ("of north", "floating"):
    rows = model.sample(2000, given={"nurse": nurse})
    print(nurse, rows["ward"].value_counts(normalize=True).round(2).to_dict())

filled = model.impute(X)
gaps = is_missing[:, :30]
error = (filled[cells.columns].to_numpy(float) - cells.to_numpy())[gaps]
of_mean = (X[cells.columns].mean().to_numpy() - cells.to_numpy())[gaps]
scale = np.broadcast_to(cells.std().to_numpy(), gaps.shape)[gaps]
print(f"imputation: {np.std(error / scale) / np.std(of_mean / scale):.2f} of the mean's error")
