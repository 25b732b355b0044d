"""
Which columns depend on which
=============================

A table of many columns seldom has one clustering of its rows: wages may depend on rent, but not on
shoe size. Cross-categorization partitions the columns into *views* and clusters the rows
separately in each. So the answer includes which columns depend on each other.
"""

# %%
# The table
# ---------
# 569 tumours with five measurements of the cells' nuclei. Four columns that have nothing to do with
# tumours are added; two of these depend on each other. One cell in ten is removed.

import numpy as np
from sklearn.datasets import load_breast_cancer

rng = np.random.default_rng(0)
cells, benign = load_breast_cancer(as_frame=True, return_X_y=True)
cells = cells[[f"mean {name}" for name in "radius area texture smoothness symmetry".split()]]
ward = rng.choice(["north", "south", "west"], size=len(cells), p=[0.5, 0.3, 0.2])
complete = cells.assign(
    ward=ward,
    nurse=np.where(rng.random(len(cells)) < 0.9, np.char.add("of ", ward), "floating"),
    door=rng.integers(1, 7, size=len(cells)),
    temperature=rng.normal(20, 1, size=len(cells)),
)
is_missing = rng.random(complete.shape) < 0.1
X = complete.mask(is_missing)
X.head()

# %%
# The fit
# -------
# There are two chains. This prints the views of the point estimate.

from skanneal import CrossCatPY

model = CrossCatPY(n_chains=2, random_state=1).fit(X)
for v in range(model.n_views_):
    columns = X.columns[model.view_labels_ == v]
    print(f"{model.row_labels_[v].max() + 1:2d} clusters:", ", ".join(columns))

# %%
# Dependence
# ----------
# The probability is 0 or 1 if the draws agree on a pair of columns, and lies between otherwise.
# Radius and area measure the same thing; wards depend on nurses and on nothing else.

from skanneal.displays import DependenceDisplay, ViewsDisplay

DependenceDisplay.from_estimator(model)

# %%
# ``mutual_information`` says how strongly columns depend on each other: in nats or, normalised, as
# the correlation that normal variables with the same information would have.

strength = model.mutual_information(normalized=True)
print(strength.loc["mean radius"].drop("mean radius").nlargest(3).round(2))
print(strength.loc["ward"].drop("ward").nlargest(2).round(2))

# %%
# The table, view by view
# -----------------------
# Each panel is a view, with its rows sorted by their cluster in that view; grey cells are missing.
# In this order the table shows blocks.

ViewsDisplay.from_estimator(model, X)

# %%
# Questions
# ---------
# What does a nurse say about the ward? ``sample`` with ``given`` draws rows that have the given
# cells; ``score_samples`` would give their density. Gaps are filled from the columns on which they
# depend. Their error is printed relative to the error of filling in each column's mean.

for nurse in ("of north", "floating"):
    rows = model.sample(2000, given={"nurse": nurse})
    print(nurse, rows["ward"].value_counts(normalize=True).round(2).to_dict())

filled = model.impute(X)
gaps = is_missing[:, :5]
error = (filled[cells.columns].to_numpy(float) - cells.to_numpy())[gaps]
of_mean = (X[cells.columns].mean().to_numpy() - cells.to_numpy())[gaps]
scale = np.broadcast_to(cells.std().to_numpy(), gaps.shape)[gaps]
print(f"imputation: {np.std(error / scale) / np.std(of_mean / scale):.2f} of the mean's error")
