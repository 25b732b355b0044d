"""
A likelihood of your own: hours of the day
==========================================

A clock has no ends: half past eleven at night and a quarter past midnight are close, though 23.5
and 0.25 are not. No family of columns here knows that. :class:`~skanneal.AcceleratedDPMixture`
takes a likelihood that you write, and it need not have a conjugate prior.
"""

# %%
# The data
# --------
# These are 700 invented calls to a help line. There is a rush before work, one after work and one
# around midnight, and one call in six comes at any hour.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ive

rng = np.random.default_rng(0)
source = rng.choice(4, size=700, p=[0.3, 0.25, 0.28, 0.17])
rush = np.array([7.5, 17.5, 23.8])[np.minimum(source, 2)]
sharpness = np.array([30.0, 8.0, 12.0, 0.0])[source]
hours = (rush + rng.vonmises(0, sharpness) * 12 / np.pi) % 24
X = hours[:, None]

# %%
# The likelihood
# --------------
# It is von Mises, the normal distribution of the circle. Let u be the point of the unit circle to
# which the hand of a 24-hour clock points. The density is exp(theta . u) / (2 pi I0(r)), where r is
# the length of theta. The vector theta points to the middle hour, and the longer it is, the sharper
# the peak. Its prior is normal.
#
# A sampler needs five methods, and with two more it can propose features from the data.
# ``statistics`` of two shards of the rows must add up. ``draw`` need not draw from the posterior of
# a feature; a step that leaves it invariant is enough. Here it is a Metropolis step, whose length
# is drawn each time, so that it suits features of few rows and of many.

from skanneal.likelihoods import Likelihood


class VonMises(Likelihood):
    spread = 8.0  # of theta in the prior

    def encode(self, X):
        angle = np.asarray(X, dtype=float)[:, 0] * np.pi / 12
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def log_constant(self, theta):  # of a density over 24 hours
        length = np.linalg.norm(theta, axis=1)
        return -np.log(24 * ive(0, length)) - length

    def log_lik(self, rows, theta, out):
        out[:] = rows @ theta.T + self.log_constant(theta)

    def statistics(self, rows, labels, n_features):
        in_feature = labels == np.arange(n_features)[:, None]
        return np.column_stack([in_feature.sum(axis=1), in_feature @ rows])

    def draw(self, statistics, theta, rng):
        n, sums = statistics[:, 0], statistics[:, 1:]

        def log_posterior(theta):
            return (sums * theta).sum(axis=1) + n * self.log_constant(theta) + self.log_prior(theta)

        for _ in range(20):
            length = self.spread * 10 ** rng.uniform(-2, 0, size=(len(theta), 1))
            new = theta + length * rng.standard_normal(theta.shape)
            ratio = log_posterior(new) - log_posterior(theta)
            accepted = np.log(rng.random(len(theta))) < ratio
            theta = np.where(accepted[:, None], new, theta)
        return theta

    def prior_draw(self, n, rng):
        return self.spread * rng.standard_normal((n, 2))

    def log_prior(self, theta):
        return log_normal(theta, 0.0, self.spread)

    def proposal_draw(self, rows, rng):
        return 8 * rows + 8 * rng.standard_normal(rows.shape)

    def proposal_logpdf(self, theta, row):
        return log_normal(theta, 8 * row, 8.0)


def log_normal(theta, mean, spread):
    """Log density of N(mean, spread^2 I) in the plane."""
    squares = ((theta - mean) ** 2).sum(axis=1) / spread**2
    return -squares / 2 - np.log(2 * np.pi * spread**2)


# %%
# The fit
# -------
# With ``point_estimate="map"`` the labels are the components of the mixture, and one of them has
# the calls at any hour. Clusters would not show it, since no valley separates it from the others.
# This prints the largest components, each with its middle hour.

from skanneal import AcceleratedDPMixture
from skanneal.schedules import AcceleratedSchedule

schedule = AcceleratedSchedule(n_accelerated=20, n_exact=1000)
options = {"schedule": schedule, "point_estimate": "map", "random_state": 0}
model = AcceleratedDPMixture(likelihood=VonMises(), **options).fit(X)
sizes = np.bincount(model.labels_)
for k in np.argsort(-sizes)[:4]:
    x, y = model.features_[k]
    hour = np.arctan2(y, x) * 12 / np.pi % 24
    print(f"{sizes[k]} calls around {hour:4.1f} h, sharpness {np.hypot(x, y):.1f}")

# %%
# The density
# -----------
# The hours run clockwise. Calls of the four largest components are coloured, the others are grey.
# The density has no seam at midnight.

grid = np.linspace(0, 24, 481)
density = np.exp(model.score_samples(grid[:, None]))
print(f"area under the density: {density[:-1].mean() * 24:.3f}")

figure = plt.figure(figsize=(5.4, 5.4), layout="constrained")
ax = figure.add_subplot(projection="polar", theta_direction=-1, theta_offset=np.pi / 2)
largest = np.argsort(-sizes)[:4]
shades = plt.colormaps["Dark2"].colors
edges = np.linspace(0, 2 * np.pi, 49)
bottom = np.zeros(48)
for k, color in zip([*largest, None], [*shades[:4], "0.8"]):
    members = np.isin(model.labels_, largest, invert=True) if k is None else model.labels_ == k
    counts = np.histogram(hours[members] * np.pi / 12, edges)[0] / (len(hours) / 2)
    ax.bar(edges[:-1], counts, np.pi / 24, bottom, align="edge", color=color, linewidth=0)
    bottom += counts
ax.plot(grid * np.pi / 12, density, color="black", linewidth=1.4)
ax.set_xticks(np.arange(8) * np.pi / 4, [f"{hour} h" for hour in range(0, 24, 3)])
ax.set_yticks([])
ax.grid(alpha=0.3)
plt.show()
