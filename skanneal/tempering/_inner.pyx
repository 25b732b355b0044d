"""Random-walk Metropolis and Hamiltonian Monte Carlo, each reversible with respect to its level.

Random walk: theta' = theta + step * scale * z, z ~ N(0, I).
Hamiltonian: momentum p ~ N(0, I) anew each time; least_steps to n_steps leapfrog steps, uniformly,

    p += step / 2 * scale * grad log h,  theta += step * scale * p,  p += step / 2 * scale * grad.

Both are accepted by Metropolis' rule. A number of steps drawn without looking at theta makes a
mixture of reversible kernels, which is reversible. Several updates U_1 .. U_n are applied
as U_1 .. U_n .. U_1: the palindrome of reversible kernels is reversible, their product is not, and
tempered transitions need it.

A sampler in Python gets theta and a `Level`, and returns the next theta.

While `adapting`, log step follows Robbins and Monro towards the target acceptance; `freeze` puts
the mean of its path in its place (Polyak and Ruppert), weighted towards the end.
"""

from libc.math cimport INFINITY, exp, pow
from libc.string cimport memcmp, memcpy

import numpy as np

from .._native._random cimport below, standard_normal, uniform
from ._bound cimport BoundTarget
from ._levels cimport Levels, Replica, exchange, probability

cdef double FIRST = 10.0             # adaptations that the first one counts as
cdef double DECAY = 0.6


cdef class Inner:
    """The updates of one chain.

    Parameters
    ----------
    levels : Levels
        The chain's.
    updates : list of dict
        `sampler`, one in Python, if it is; `hamiltonian`, `n_steps`, `least_steps`, `target`,
        `adapt`.
    steps : array-like of shape (n_updates, n_levels)
        Step sizes to begin with.
    scale : array-like of shape (n_parameters,)
        Units of the steps.
    """

    def __init__(self, Levels levels, updates, steps, scale):
        shape = (len(updates), levels.n_levels)
        if not 1 <= len(updates) <= MAX_UPDATES:
            raise ValueError(f"inner must name 1 to {MAX_UPDATES} samplers, got {len(updates)}.")
        self.levels, self.n_updates = levels, len(updates)
        self.samplers, self.generator = [], None
        for k, update in enumerate(updates):
            self.samplers.append(update.get("sampler"))
            self.update[k] = Update(
                own=update.get("sampler") is not None,
                hamiltonian=update["hamiltonian"],
                n_steps=update["n_steps"],
                least_steps=update["least_steps"],
                target=update["target"],
                adapt=update["adapt"],
            )
        self.log_step = np.log(np.array(steps, dtype=np.float64).reshape(shape))
        self.mean_step = np.array(self.log_step)
        self.n_adapted = np.zeros(shape, dtype=np.int64)
        self.sum_probability = np.zeros(shape)
        self.n_proposed = np.zeros(shape, dtype=np.int64)
        self.scale = np.array(scale, dtype=np.float64)
        self.momentum = np.zeros(levels.n_parameters)
        self.adapting = False

    cdef void move(self, Replica *at, Py_ssize_t level) noexcept nogil:
        """The palindrome of the updates; an independent draw where the level is the prior."""
        cdef Py_ssize_t k
        if self.levels.power[level] == 0.0 and self.levels.exact_prior:
            self.levels.draw_prior(at)
            return
        for k in range(self.n_updates):
            self.apply(k, at, level)
        for k in range(self.n_updates - 2, -1, -1):
            self.apply(k, at, level)

    cdef void apply(self, Py_ssize_t k, Replica *at, Py_ssize_t level) noexcept nogil:
        cdef Py_ssize_t _i
        if self.update[k].own:
            self.move_own(k, at, level)
        elif self.update[k].hamiltonian:
            self.hamiltonian(k, at, level)
        else:
            for _i in range(self.update[k].n_steps):
                self.random_walk(k, at, level)

    cdef void move_own(self, Py_ssize_t k, Replica *at, Py_ssize_t level) noexcept nogil:
        with gil:
            if self.levels.target.error is None:
                try:
                    self.call_own(k, at, level)
                except BaseException as error:
                    self.levels.target.error, self.levels.target.failed = error, True

    cdef int call_own(self, Py_ssize_t k, Replica *at, Py_ssize_t level) except -1:
        """Ask the sampler in Python for the next theta; moves elsewhere count as accepted."""
        cdef Replica *to = self.levels.spare
        cdef Py_ssize_t size = self.levels.n_parameters * sizeof(double)
        cdef double[::1] moved
        cdef Level seen = Level(self, level, np.exp(self.log_step[k, level]) * np.array(self.scale))
        if self.generator is None:
            self.generator = np.random.Generator(self.levels.bit_generator)
        seen.at = at
        sampler = self.samplers[k]
        moved = np.array(sampler.move(copied(self.levels, at), seen, self.generator), dtype=float)
        if len(moved) != self.levels.n_parameters:
            raise ValueError(
                f"move of {type(sampler).__name__} returned {len(moved)} numbers for "
                f"{self.levels.n_parameters} parameters."
            )
        self.n_proposed[k, level] += 1
        if memcmp(&moved[0], at.theta, size) == 0:
            self.adapt_step(k, level, 0.0)
            return 0
        if not seen.tried or memcmp(&moved[0], to.theta, size) != 0:
            memcpy(to.theta, &moved[0], size)
            self.levels.moved(to)
        if not self.levels.log_density(to, level) > -INFINITY:
            raise ValueError(
                f"move of {type(sampler).__name__} returned a theta without a density at level "
                f"{level}: an update must stay where there is one."
            )
        self.sum_probability[k, level] += 1.0
        self.adapt_step(k, level, 1.0)
        exchange(at, to)
        return 0

    cdef void random_walk(self, Py_ssize_t k, Replica *at, Py_ssize_t level) noexcept nogil:
        cdef Replica *to = self.levels.spare
        cdef double step = exp(self.log_step[k, level]), now
        cdef Py_ssize_t i
        now = self.levels.log_density(at, level)
        for i in range(self.levels.n_parameters):
            to.theta[i] = at.theta[i] + step * self.scale[i] * standard_normal(self.levels.rng)
        self.levels.moved(to)
        self.decide(k, at, level, self.levels.log_density(to, level) - now)

    cdef void hamiltonian(self, Py_ssize_t k, Replica *at, Py_ssize_t level) noexcept nogil:
        cdef Replica *to = self.levels.spare
        cdef double step = exp(self.log_step[k, level]), energy = 0.0, now
        cdef Py_ssize_t i, s, d = self.levels.n_parameters, n_steps
        cdef double *p = &self.momentum[0]
        cdef double *scale = &self.scale[0]
        cdef double *gradient = &self.levels.gradient[0]
        n_steps = self.update[k].n_steps - below(
            self.levels.rng, self.update[k].n_steps - self.update[k].least_steps + 1
        )
        now = self.levels.log_density(at, level)
        self.levels.find_gradient(at, level)
        memcpy(to.theta, at.theta, d * sizeof(double))
        for i in range(d):
            p[i] = standard_normal(self.levels.rng)
            energy += 0.5 * p[i] * p[i]
        for s in range(n_steps):
            for i in range(d):
                p[i] += 0.5 * step * scale[i] * gradient[i]
                to.theta[i] += step * scale[i] * p[i]
            if s + 1 < n_steps:
                to.gradient_rung = -1
            else:
                # The last point is where the trajectory may stay: values and gradient in one.
                self.levels.moved(to)
                if not to.prior > -INFINITY:
                    self.decide(k, at, level, -INFINITY)
                    return
                if self.levels.power[level] != 0.0:
                    self.levels.evaluate(to, level, True)
            if not self.levels.find_gradient(to, level):
                # Its reversal would meet the same point: no trajectory goes through it.
                self.levels.nan_count[level] += s + 1 < n_steps
                self.decide(k, at, level, -INFINITY)
                return
            for i in range(d):
                p[i] += 0.5 * step * scale[i] * gradient[i]
        for i in range(d):
            energy -= 0.5 * p[i] * p[i]
        self.decide(k, at, level, self.levels.log_density(to, level) - now + energy)

    cdef bint decide(
        self, Py_ssize_t k, Replica *at, Py_ssize_t level, double log_ratio
    ) noexcept nogil:
        """Take the spare replica for this one, or not; count, and adapt the step."""
        cdef double p = probability(log_ratio)
        cdef bint accepted
        self.sum_probability[k, level] += p
        self.n_proposed[k, level] += 1
        accepted = uniform(self.levels.rng) < p
        if accepted:
            exchange(at, self.levels.spare)
        self.adapt_step(k, level, p)
        return accepted

    cdef void adapt_step(self, Py_ssize_t k, Py_ssize_t level, double p) noexcept nogil:
        """Adapt a step to the acceptance of a proposal, in warm-up."""
        cdef double weight, n
        if self.adapting and self.update[k].adapt:
            self.n_adapted[k, level] += 1
            n = <double> self.n_adapted[k, level]
            weight = self.update[k].target * (1.0 - self.update[k].target)
            self.log_step[k, level] += (
                pow(n + FIRST, -DECAY) / weight * (p - self.update[k].target)
            )
            self.mean_step[k, level] += (
                pow(n, -DECAY) * (self.log_step[k, level] - self.mean_step[k, level])
            )

    # ---- Python's side, between iterations ------------------------------------------------------

    def set_adapting(self, bint adapting):
        """Adapt the steps from now on, from scratch; or freeze them at their means."""
        if self.adapting and not adapting:
            adapted = np.asarray(self.n_adapted) > 0
            self.log_step = np.where(adapted, self.mean_step, self.log_step)
        self.mean_step = np.array(self.log_step)
        self.n_adapted[:, :] = 0
        self.adapting = adapting

    def reset_counts(self):
        """Forget the acceptances so far."""
        self.sum_probability[:, :] = 0.0
        self.n_proposed[:, :] = 0

    def set_scale(self, scale):
        """Other units; steps keep their mean length."""
        change = np.mean(np.log(self.scale)) - np.mean(np.log(scale))
        self.log_step = np.asarray(self.log_step) + change
        self.mean_step = np.asarray(self.mean_step) + change
        self.scale = np.array(scale, dtype=np.float64)

    def get_scale(self):
        """Units of the steps, a copy."""
        return np.array(self.scale)

    def get_steps(self):
        """Step sizes by update and level."""
        return np.exp(np.asarray(self.log_step))

    def get_acceptance(self):
        """Mean acceptance probability by update and level; NaN where nothing was proposed."""
        n = np.asarray(self.n_proposed)
        return np.where(n > 0, np.asarray(self.sum_probability) / np.maximum(n, 1), np.nan)

    def get_sums(self):
        """Sums of acceptance probabilities by update and level."""
        return np.array(self.sum_probability)


cdef object copied(Levels levels, Replica *at):
    """Theta of a replica."""
    return np.asarray(<double[:levels.n_parameters]> at.theta).copy()


cdef class Level:
    """A level of a ladder, as `BaseInnerSampler.move` is given it.

    Parameters
    ----------
    inner : Inner
        The chain's updates.
    number : int
        0 is the target.
    steps : ndarray of shape (n_parameters,)
        Units of the parameters at this level.
    """

    def __init__(self, Inner inner, Py_ssize_t number, steps):
        cdef Levels levels = inner.levels
        cdef BoundTarget target = levels.target
        self.inner, self.number, self.steps, self.tried = inner, number, steps, False
        self.beta = levels.power[number] * target.sizes[levels.rung[number]] / target.n_rows

    cdef Replica *find(self, theta) except NULL:
        """The replica that holds theta: the chain's, or the spare one, which is given it."""
        cdef Levels levels = self.inner.levels
        cdef double[::1] given = levels.target.point(theta)
        cdef Py_ssize_t size = levels.n_parameters * sizeof(double)
        if memcmp(&given[0], self.at.theta, size) == 0:
            return self.at
        if not self.tried or memcmp(&given[0], levels.spare.theta, size) != 0:
            memcpy(levels.spare.theta, &given[0], size)
            levels.moved(levels.spare)
            self.tried = True
        return levels.spare

    def log_density(self, theta):
        """Log density of the level at theta, up to a constant; -inf where there is none."""
        cdef double value = self.inner.levels.log_density(self.find(theta), self.number)
        self.inner.levels.target.raise_error()
        return value

    def gradient(self, theta):
        """Gradient of `log_density`; needs a target that has gradients."""
        cdef Levels levels = self.inner.levels
        if not levels.target.has_gradient:
            raise TypeError(f"{type(levels.description).__name__} has no gradients.")
        levels.find_gradient(self.find(theta), self.number)
        levels.target.raise_error()
        return np.array(levels.gradient)
