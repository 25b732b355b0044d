"""
Tempering by subsampling: two modes
===================================

A posterior with two modes traps an ordinary Markov chain in one of them. With fewer rows the valley
between the modes is shallow. Tempering by subsampling keeps one replica of the chain for each of
several nested subsets of the rows, lets neighbours exchange places, and draws from the posterior of
all rows exactly.
"""

# %%
# The target
# ----------
# Rows are normal with unit variance about :math:`\theta^2`: the data say how far theta is from
# zero, but not on which side. Forty rows put a deep valley between the modes.

import matplotlib.pyplot as plt
import numpy as np

from skanneal.schedules import CustomLadder
from skanneal.tempering import RandomWalk, Target, sample


class Square(Target):
    n_parameters = 1

    def __init__(self, x):
        self.x, self.n_rows = x, len(x)

    def log_prior(self, theta, gradient=False):
        return -0.5 * theta[0] ** 2 - 0.5 * np.log(2 * np.pi), None

    def log_likelihood(self, theta, rows, gradient=False):
        residuals = self.x[rows] - theta[0] ** 2
        return -0.5 * residuals @ residuals - 0.5 * len(rows) * np.log(2 * np.pi), None

    def draw_prior(self, generator):
        return generator.standard_normal(1)


x = 1.0 + np.random.default_rng(0).normal(size=40)
target = Square(x)

# %%
# One inner sampler, with and without levels
# ------------------------------------------
# The ladder ends at the prior, from which the hottest level is drawn exactly.

ladder = CustomLadder(betas=[1.0, 0.6, 0.35, 0.2, 0.1, 0.05, 0.0])
options = {"inner": RandomWalk(), "schedule": ladder, "n_draws": 1000, "random_state": 0}
plain = sample(target, method="none", **options)
tempered = sample(target, method="spt", **options)
for name, result in (("inner sampler alone", plain), ("subsampled", tempered)):
    print(f"{name:20} R-hat {result.r_hat[0]:.2f}, bulk ESS {result.ess_bulk[0]:.0f}")

# %%
# The four chains side by side: without levels each chain stays where it began.

figure, axes = plt.subplots(2, 1, sharex=True, sharey=True, layout="constrained")
for axis, result, title in zip(axes, (plain, tempered), ("inner sampler alone", "subsampled")):
    axis.plot(result.draws[:, :, 0].T, lw=0.6)
    axis.set(title=title, ylabel=r"$\theta$")
axes[1].set_xlabel("draw")

# %%
# Evidence
# --------
# Since the ladder ends at the prior, the chain gives the evidence too. Here a sum over a grid gives
# the exact value.

grid, rows = np.linspace(-5, 5, 20001), np.arange(len(x))
log_joint = [target.log_prior([t])[0] + target.log_likelihood([t], rows)[0] for t in grid]
expected = np.log(np.trapezoid(np.exp(log_joint - np.max(log_joint)), grid)) + np.max(log_joint)
print(f"log evidence {tempered.log_evidence:.2f} +- {tempered.log_evidence_error:.2f}")
print(f"by the grid  {expected:.2f}")
