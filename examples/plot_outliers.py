"""
The oddest rows, and which of their cells are to blame
======================================================

Four errors are planted in a table of measured wines: two slipped decimal points, a zero, and a
number of another row, which is ordinary by itself but does not go with the rest of its row.
``explain_outliers`` finds the rows and the cells.
"""

# %%
# Errors in a table
# -----------------
# Nothing else is changed. Some of the wines were odd before.

from sklearn.datasets import load_wine

X = load_wine(as_frame=True).data
X.loc[10, "magnesium"] *= 10
X.loc[40, "hue"] /= 10
X.loc[70, "ash"] = 0.0
X.loc[5, "flavanoids"] = X.loc[150, "flavanoids"]
planted = {10: "magnesium", 40: "hue", 70: "ash", 5: "flavanoids"}

# %%
# The rows, and the cell to blame
# --------------------------------
# The score of a row is minus the logarithm of how probable a row as odd as this one is, given all
# others. The cell to blame is the most surprising one; ``expected`` is what the rest of the row
# would have told.

from skanneal import AnnealedDPMixture

model = AnnealedDPMixture(n_chains=2, random_state=0).fit(X)
print(model.explain_outliers(X, n=10).round(1).to_string())

# %%
# All cells of these rows
# -----------------------
# The surprisal of a cell is minus its log density given the rest of its row. The density is in the
# unit of its column; to compare columns, each column's median is subtracted. The planted cells are
# framed. ``excess`` above is the same with the row itself left out of what the fit has learnt; here
# it is not, so that the figures are lower: a row makes itself less surprising.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

surprisal = model.surprisal(X)
excess = surprisal - surprisal.median()
shown = np.argsort(-model.outlier_scores_)[:14]
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 5), width_ratios=(1, 2.2), sharey=True, layout="constrained"
)
left.barh(range(len(shown)), model.outlier_scores_[shown], color="0.5")
left.set_yticks(range(len(shown)), [f"row {row}" for row in shown])
left.invert_yaxis()
left.set(xlabel="outlier score")
image = right.imshow(excess.iloc[shown], cmap="Reds", vmin=0, vmax=10, aspect="auto")
right.set_xticks(range(X.shape[1]), X.columns, rotation=45, ha="right")
for place, row in enumerate(shown):
    if row in planted:
        corner = X.columns.get_loc(planted[row]) - 0.5, place - 0.5
        right.add_patch(Rectangle(corner, 1, 1, fill=False, linewidth=2))
figure.colorbar(image, label="surprisal above the column's median, nats")
plt.show()
