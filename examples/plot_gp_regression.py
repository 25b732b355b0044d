"""
Gaussian process regression over all plausible hyperparameters
==============================================================

With few rows the likelihood of a Gaussian process often has two readings of the same data: a
function that turns quickly, with little noise, or a slow one with much. An optimiser picks one of
them; ``TemperedGPRegressor`` draws from the posterior and averages.
"""

# %%
# A dozen noisy points
# --------------------

import numpy as np

rng = np.random.default_rng(3)
X = np.sort(rng.uniform(0, 10, 12))[:, None]
y = np.sin(1.3 * X[:, 0]) + rng.normal(0, 0.5, 12)

# %%
# Two fits
# --------
# The same model: a squared exponential kernel, its amplitude, and noise. scikit-learn climbs the
# likelihood from ten starts; the chains draw under weak priors.

from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from skanneal import TemperedGPRegressor

kernel = ConstantKernel() * RBF() + WhiteKernel()
optimised = GaussianProcessRegressor(
    kernel, alpha=0.0, n_restarts_optimizer=10, normalize_y=True, random_state=0
).fit(X, y)
averaged = TemperedGPRegressor(n_predict=256, random_state=0).fit(X, y)
print(f"R-hat of the length scale: {averaged.r_hat_['length_scale'][0]:.2f}")

# %%
# What they predict, and why
# --------------------------
# Bands hold 90 % of new observations. On the right are the draws; scikit-learn's choice is the
# star.

import matplotlib.pyplot as plt

grid = np.linspace(-2, 12, 300)[:, None]
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, model, title in zip(axes, (optimised, averaged), ("the likeliest", "the posterior")):
    mean, std = model.predict(grid, return_std=True)
    ax.fill_between(grid[:, 0], mean - 1.645 * std, mean + 1.645 * std, alpha=0.25)
    ax.plot(grid[:, 0], mean)
    ax.plot(grid[:, 0], np.sin(1.3 * grid[:, 0]), "k:", linewidth=1)
    ax.plot(X[:, 0], y, "k.")
    ax.set(title=title, xlabel="x", ylim=(-3, 3))

length, _, noise = np.exp(averaged.draws_.reshape(-1, 3).T)
axes[2].plot(length, noise, ".", alpha=0.3, markersize=4)
chosen = optimised.kernel_
axes[2].plot(chosen.k1.k2.length_scale, np.sqrt(chosen.k2.noise_level), "r*", markersize=14)
axes[2].set(xscale="log", yscale="log", xlabel="length scale", ylabel="noise", title="the draws")
plt.show()
