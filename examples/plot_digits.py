"""
Handwritten digits, and what the clusters look like
===================================================

A picture can be read as a row of counts, the ink in every pixel. A mixture of multinomials then has
a picture for each of its components, which shows where the ink of its members lies. Components that
no valley separates make one cluster. The number of clusters is not given, and ten would not be
right: people write some digits in more than one way.
"""

# %%
# The fit
# -------
# 1797 digits of 8 x 8 pixels with 0 to 16 units of ink, four of which count as one: neighbouring
# shades are no independent counts. The chain begins with all of them in one
# cluster. Its accelerated stage proposes features at rows that fit badly where they are. The exact
# stage that follows draws from the posterior in the long run, and only its draws are kept.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skanneal import AcceleratedDPMixture
from skanneal.schedules import AcceleratedSchedule

pictures, digits = load_digits(return_X_y=True)
X = pictures // 4
schedule = AcceleratedSchedule(n_accelerated=50, n_exact=1000)
model = AcceleratedDPMixture(likelihood="multinomial", schedule=schedule, random_state=0).fit(X)
print(model.n_components_, "components,", model.n_clusters_, "clusters")

# %%
# The features
# ------------
# Those of the largest components, with the number of digits in each.

from skanneal.displays import FeatureDisplay, TraceDisplay

FeatureDisplay.from_estimator(model, (8, 8), n_features=60)

# %%
# How it got there
# ----------------
# The log joint density rises; the grey part is the accelerated stage.

display = TraceDisplay.from_estimator(model)
burn_in = model.trace_["seconds"][0][model.trace_["burn_in"][0] == 1]
display.ax_.axvspan(0, burn_in.max(), color="0.93", zorder=0)

# %%
# Do the clusters know the digits?
# --------------------------------
# The fit has not seen which digit is which. Most members of each cluster should be the same digit.

counts = np.zeros((model.n_clusters_, 10), dtype=int)
np.add.at(counts, (model.labels_, digits), 1)
print(f"{counts.max(axis=1).sum() / len(X):.0%} of the pictures show their cluster's main digit")
clusters_of = np.bincount(counts.argmax(axis=1), minlength=10)
print("clusters of each digit:", dict(enumerate(clusters_of.tolist())))

# %%
# The odd ones out
# ----------------
# ``outlier_scores_`` says how improbable a picture as odd as this one is: the highest scores are
# those of pictures that no feature explains.

figure, axes = plt.subplots(1, 10, figsize=(9, 1.3), layout="constrained")
for ax, row in zip(axes, np.argsort(-model.outlier_scores_)):
    ax.imshow(pictures[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"a {digits[row]}?", fontsize="small")
    ax.set_axis_off()
plt.show()
