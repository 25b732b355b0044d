"""
From components to clusters
===========================

A mixture describes rows by components, and a curved cluster takes several of them. Components
belong to one cluster if it is not sure that they are two. The tree shows how sure that is, and
where it is cut.
"""

# %%
# Rows that are not normal
# ------------------------
# There are three groups: a crescent, a second one that faces it, and a skewed cloud. None of them
# has a normal distribution.

import numpy as np

rng = np.random.default_rng(0)
angle = rng.uniform(0, np.pi, 300)
crescent = np.c_[np.cos(angle), np.sin(angle)] + rng.normal(0, 0.06, (300, 2))
facing = np.c_[1 - np.cos(angle), 0.5 - np.sin(angle)] + rng.normal(0, 0.06, (300, 2))
skewed = np.c_[3 + rng.exponential(0.4, 300), rng.normal(0.3, 0.2, 300)]
X = np.r_[crescent, facing, skewed]

# %%
# The fit
# -------
# The fit finds many components and few clusters.

from skanneal import AnnealedDPMixture

model = AnnealedDPMixture(random_state=0).fit(X)
print(model.n_components_, "components,", model.n_clusters_, "clusters")
print("how sure the surest valleys are:", model.valley_sureness_[:5].round(2))

# %%
# The tree
# --------
# The tree is built from the bottom: within clusters, components that overlap most join first; above
# the dotted line, which is at ``separation``, the nearest of clusters that are sure.

from skanneal.displays import ClusterTreeDisplay

ClusterTreeDisplay.from_estimator(model)

# %%
# What is joined
# --------------
# The left picture shows the components, the right one the clusters. With other data a thin, curved
# group may still be cut in two. Such a cut is among the lowest joins above the line, and
# ``n_clusters`` undoes it.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(10, 1.7), sharey=True, layout="constrained")
for ax, labels, title in (
    (axes[0], model.component_labels_, f"{model.n_components_} components"),
    (axes[1], model.labels_, f"{model.n_clusters_} clusters"),
):
    ax.scatter(*X.T, c=plt.colormaps["tab20"](labels % 20), s=9, linewidths=0)
    ax.set(title=title, aspect="equal", xticks=[], yticks=[])
plt.show()
