"""
Why anneal on subsamples: two urns
==================================

8000 red and 12000 blue balls came out of two urns. A ball came from the left urn with probability
0.45; how many of an urn's balls are red is unknown, with a Beta(1/2, 1/2) prior. Which balls came
from the left? Balls of one colour are alike, so the answer is two numbers: the red and the blue
balls that lie on the left. Their posterior is known exactly, which makes the model a test bench.

The posterior is a long thin ridge: the left urn holds close to 45 % of the balls, but nearly any
mixture of colours will do, and the two segregated ends are the most probable. A Gibbs sampler that
moves one ball of 20000 at a time takes some :math:`N^2` moves to walk along that ridge. With a
subsample of 20 balls the ridge is 20 moves long; a sampler that begins there, and lets the
subsample churn and grow, arrives at the full data already spread along it.

The figure follows Figure 2 of Obermeyer, Glidden and Jonas (2014), with 1000 samples for each
strategy, in NumPy; ``benchmarks/papers/two_urns_figures.py`` draws 100,000 or more of each with
compiled samplers.
"""

# %%
# The model
# ---------
# A ball that is assigned goes left or right in proportion to the urn's prior probability times the
# share of the ball's colour there. The state of 1000 samples is kept in flat arrays: ``left`` has
# the red balls in the left urn of each sample, then the blue ones, ``inside`` the same for all
# balls of the subsample, and ``at`` is the position of the colour of the ball in hand.

import numpy as np

n_red, n_blue, p, a = 8000, 12000, 0.45, 0.5
n_balls = n_red + n_blue
n_sweeps = 10
n_samples = 1000
column = np.arange(n_samples)


def uniforms(rng, n_steps, at_once=200):
    """For each step a row of uniform numbers to pick a ball and one of thresholds for its urn."""
    for start in range(0, n_steps, at_once):
        u = rng.random((min(at_once, n_steps - start), 2, n_samples))
        # Left if u < odds / (1 + odds), that is, if the likelihood ratio is above this.
        u[:, 1] *= (1 - p) / p / (1 - u[:, 1])
        yield from u


def likelihood_ratio(same_left, n_left, same, n, a=a):
    """Left against right for a ball with ``same`` like balls among ``n``, itself not counted."""
    left = (same_left + a) * (n + 2 * a - n_left)
    return left / ((same - same_left + a) * (n_left + 2 * a))


# %%
# Steps on a growing subsample
# ----------------------------


class Subsample:
    def __init__(self):
        self.left, self.inside = np.zeros(2 * n_samples), np.zeros(2 * n_samples)
        self.n_left, self.n = np.zeros(n_samples), 0

    def assign(self, pick, threshold):
        """One of the balls outside enters the subsample and an urn."""
        at = column + n_samples * (pick * (n_balls - self.n) >= n_red - self.inside[:n_samples])
        same_left, same = self.left[at], self.inside[at]
        is_left = likelihood_ratio(same_left, self.n_left, same, self.n) > threshold
        self.left[at] = same_left + is_left
        self.inside[at] = same + 1
        self.n_left += is_left
        self.n += 1

    def remove(self, pick):
        """One of the balls of the subsample leaves it."""
        position = pick * self.n
        is_blue = position >= self.inside[:n_samples]
        at = column + n_samples * is_blue
        position -= is_blue * self.inside[:n_samples]
        same_left = self.left[at]
        is_left = position < same_left
        self.left[at] = same_left - is_left
        self.inside[at] -= 1
        self.n_left -= is_left
        self.n -= 1


def anneal_subsample(rng):
    """For each ball added, nine balls leave and nine enter."""
    subsample, numbers = Subsample(), uniforms(rng, n_sweeps * n_balls)
    for _ in range(n_balls):
        subsample.assign(*next(numbers))
        for _ in range(n_sweeps - 1):
            subsample.remove(rng.random(n_samples))
            subsample.assign(*next(numbers))
    return subsample.left


def sequential(rng):
    """One ball after another, given those before."""
    subsample = Subsample()
    for pick, threshold in uniforms(rng, n_balls):
        subsample.assign(pick, threshold)
    return subsample.left


# %%
# Steps on the full data
# ----------------------
# ``gibbs`` takes a ball out and puts it back, again and again. *Annealing the energy* raises the
# likelihood to a power beta that grows from 0 to 1. *Annealing the step size* moves a handful of
# 1/beta balls of one colour as if it were one ball of a smaller data set: not a sampler one would
# use, but it shows what a subsample does. Both begin with a draw from the prior.


def gibbs(left, rng, n_steps, beta=lambda t: 1.0, size=lambda t: 1):
    n_left = left[:n_samples] + left[n_samples:]
    for t, (pick, threshold) in enumerate(uniforms(rng, n_steps), start=1):
        pick *= n_balls
        is_blue = pick >= n_red
        at, total = column + n_samples * is_blue, n_red + (n_blue - n_red) * is_blue
        same_left = left[at]
        is_left = pick - n_red * is_blue < same_left
        moved = 1
        if size(t) > 1:
            moved = np.minimum(size(t), np.where(is_left, same_left, total - same_left))
        same_left -= moved * is_left
        n_left -= moved * is_left
        ratio = likelihood_ratio(same_left, n_left, total - moved, n_balls - moved, a * size(t))
        now = (ratio if beta(t) == 1.0 else ratio ** beta(t)) > threshold
        left[at] = same_left + moved * now
        n_left += moved * now
    return left


def prior(rng):
    return rng.binomial([[n_red], [n_blue]], p, size=(2, n_samples)).ravel().astype(float)


def sequential_gibbs(rng):
    return gibbs(sequential(rng), rng, (n_sweeps - 1) * n_balls)


def anneal_energy(rng):
    return gibbs(prior(rng), rng, n_sweeps * n_balls, beta=lambda t: t / (n_sweeps * n_balls))


def anneal_stepsize(rng):
    return gibbs(prior(rng), rng, n_sweeps * n_balls, size=lambda t: round(n_sweeps * n_balls / t))


# %%
# Six strategies
# --------------
# Each gets ten assignments per ball (the sequential one a single one, the prior none). They run
# side by side.

from joblib import Parallel, delayed

strategies = {
    "prior": prior,
    "sequential": sequential,
    "sequential + Gibbs": sequential_gibbs,
    "anneal energy": anneal_energy,
    "anneal step size": anneal_stepsize,
    "anneal subsample": anneal_subsample,
}
runs = Parallel(n_jobs=-1)(
    delayed(strategy)(np.random.default_rng(seed))
    for seed, strategy in enumerate(strategies.values())
)
samples = dict(zip(strategies, runs))

# %%
# The exact posterior
# -------------------
# Summed into 100 x 100 bins of the shares of red and blue balls on the left.

from scipy.special import gammaln


def colour_factor(left, total):
    """Log of the terms of the posterior that depend on one colour's count on the left."""
    ways = -gammaln(left + 1) - gammaln(total - left + 1)
    return ways + gammaln(a + left) + gammaln(a + total - left)


def binned_posterior(n_bins=100):
    red, blue, n_left = (np.arange(total + 1) for total in (n_red, n_blue, n_balls))
    log_red, log_blue = colour_factor(red, n_red), colour_factor(blue, n_blue)
    log_urns = n_left * np.log(p / (1 - p))
    log_urns -= gammaln(2 * a + n_left) + gammaln(2 * a + n_balls - n_left)
    highest = max((log_red[r] + log_blue + log_urns[r:][: n_blue + 1]).max() for r in (0, n_red))
    edges = np.searchsorted(blue * n_bins // (n_blue + 1), np.arange(n_bins))
    mass = np.zeros((n_bins, n_bins))
    for r in red:
        weights = np.exp(log_red[r] + log_blue + log_urns[r:][: n_blue + 1] - highest)
        mass[r * n_bins // (n_red + 1)] += np.add.reduceat(weights, edges)
    return mass / mass.sum()


def histogram(left, n_bins=100):
    red, blue = left.reshape(2, n_samples).astype(int) * n_bins
    counts = np.zeros((n_bins, n_bins))
    np.add.at(counts, (red // (n_red + 1), blue // (n_blue + 1)), 1 / n_samples)
    return counts


def coarse(mass, factor=5):
    n_bins = len(mass) // factor
    return mass.reshape(n_bins, factor, n_bins, factor).sum(axis=(1, 3))


posterior = binned_posterior()
distance = {
    name: 0.5 * np.abs(coarse(histogram(left)) - coarse(posterior)).sum()
    for name, left in samples.items()
}
exact = np.random.default_rng(99).multinomial(n_samples, coarse(posterior).ravel(), size=200)
floor = 0.5 * np.abs(exact / n_samples - coarse(posterior).ravel()).sum(axis=1).mean()
for name, value in distance.items():
    print(f"{name:20s} {value:.3f}")
print(f"{'exact samples':20s} {floor:.3f}")

# %%
# Total variation to the posterior is taken on 20 x 20 bins; 1000 exact samples would show the
# distance in the last line. Annealing on a subsample and annealing the step size come closest.
# Annealing the energy hardly leaves the prior: until beta is nearly 1 the prior of the labels,
# which has 20000 factors, outweighs the likelihood, and then too few steps are left.
#
# The figure
# ----------
# Histograms smoothed by a Gaussian of one bin; the colour scale is the same in all panels.

import matplotlib.pyplot as plt
from matplotlib.colors import LogNorm
from scipy.ndimage import gaussian_filter

panels = {name: histogram(left) for name, left in samples.items()} | {"posterior": posterior}
figure, axes = plt.subplots(2, 4, figsize=(11, 5.8), layout="constrained")
for ax, (name, mass) in zip(axes.flat, panels.items()):
    density = gaussian_filter(mass, 1.0, mode="constant") * mass.size
    image = ax.imshow(
        np.ma.masked_less(density, 0.3).T,
        origin="lower",
        extent=(0, 1, 0, 1),
        cmap="magma_r",
        norm=LogNorm(0.3, 200),
    )
    ax.set_title(name, fontsize=11, loc="left")
    note = f"distance {distance[name]:.2f}" if name in distance else "exact"
    ax.text(0.95, 0.93, note, transform=ax.transAxes, ha="right", va="top", fontsize=10)
    ax.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    ax.set(xlabel="share of red on the left", ylabel="share of blue on the left")
    ax.label_outer()
axes.flat[-1].set_axis_off()
scale = axes.flat[-1].inset_axes([0.1, 0.0, 0.08, 1.0])
figure.colorbar(image, cax=scale, label="density")
plt.show()
