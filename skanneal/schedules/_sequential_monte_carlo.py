"""Particles that see one row after another, and tell the evidence."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval

from ._linear_anneal import LinearAnneal


class SequentialMonteCarlo(LinearAnneal):
    """Let particles see one row after another, weigh them by what they predict, and resample.

    Data-tempered sequential Monte Carlo [1]_. Every chain is an island of its own: its particles
    begin as draws from the prior, without rows, and all take in the same rows, in an order of the
    island's own. A row weighs each particle by the density that the particle gives it; where the
    effective sample size falls below `min_ess` of the particles, these are resampled (systematic
    resampling). Between the rows the particles move in place, on the rows so far, by moves that
    leave the posterior of these rows invariant. The particle that is drawn by weight in the end
    goes on as the chain.

    The mean of the weights estimates the evidence, without bias whatever the number of particles:
    an estimator that is given this schedule has `log_evidence_`, and runs `n_particles` times the
    sweeps.

    Parameters
    ----------
    n_particles : int, default=32
        Particles of each chain's island.
    n_first : int, default=256
        Particles while the rows are fewer than 8, if that is more: half as many from 8 rows on, a
        quarter from 16, and so on down to `n_particles`. What hyperparameters are worth shows in
        the first rows, and there particles cost little.
    n_sweeps : float, default=20
        Assignments of one particle divided by rows, final sweeps included. One sweep takes the rows
        in. Of the rest, the rows so far are swept in place after each row that enters while they
        are few, and then whenever as many assignments are due.
    final_sweeps : float, default=2
        Sweeps of all rows at the end; at most ``n_sweeps - 1``.
    min_ess : float, default=0.5
        Share of the particles. 1 resamples after every row, 0 never.
    max_time : None
        The evidence would depend on the clock: there is no time limit.
    selection : {"random", "window", "stratified"}, default="random"
        In which order rows enter.

    References
    ----------
    .. [1] N. Chopin (2002). "A Sequential Particle Filter Method for Static Models". Biometrika 89.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal import AnnealedDPMixture
    >>> from skanneal.schedules import SequentialMonteCarlo
    >>> X = np.random.default_rng(0).normal([[-4.0], [4.0]], size=(2, 20)).reshape(-1, 1)
    >>> schedule = SequentialMonteCarlo(n_particles=8, n_first=64, n_sweeps=5)
    >>> model = AnnealedDPMixture(schedule=schedule, random_state=0).fit(X)
    >>> model.n_clusters_, -105 < model.log_evidence_ < -80
    (2, True)
    """

    _names = {"smc": {}}
    _parameter_constraints: dict = {
        **LinearAnneal._parameter_constraints,
        "n_particles": [Interval(Integral, 1, None, closed="left")],
        "n_first": [Interval(Integral, 1, None, closed="left")],
        "n_sweeps": [Interval(Real, 1, None, closed="left")],
        "min_ess": [Interval(Real, 0, 1, closed="both")],
        "max_time": [None],
    }

    def __init__(
        self,
        *,
        n_particles=32,
        n_first=256,
        n_sweeps=20,
        final_sweeps=2,
        min_ess=0.5,
        max_time=None,
        selection="random",
    ):
        super().__init__(
            n_sweeps=n_sweeps, final_sweeps=final_sweeps, max_time=max_time, selection=selection
        )
        self.n_particles = n_particles
        self.n_first = n_first
        self.min_ess = min_ess

    def particles(self, size):
        """Return how many particles there are when so many rows are in.

        Parameters
        ----------
        size : int
            At least 1.

        Returns
        -------
        n_particles : int

        Examples
        --------
        >>> from skanneal.schedules import SequentialMonteCarlo
        >>> [SequentialMonteCarlo(n_first=100).particles(size) for size in (1, 7, 8, 16, 1000)]
        [100, 100, 50, 32, 32]
        """
        return max(self.n_particles, self.n_first >> max(0, size.bit_length() - 3))

    def stages(self, n_rows):
        """Return when a particle's rows are swept in place: a function of the path alone.

        Parameters
        ----------
        n_rows : int
            Rows of the data, at least 1.

        Yields
        ------
        size, assignments : int
            Rows enter until there are `size`; then so many assignments are made in place.

        Examples
        --------
        >>> from skanneal.schedules import SequentialMonteCarlo
        >>> list(SequentialMonteCarlo(n_sweeps=3, final_sweeps=1).stages(4))
        [(1, 1), (4, 7)]
        """
        annealed, total = self._stages(n_rows)
        made = 0
        for size in range(1, n_rows):
            due = annealed * size // n_rows - size - made
            if due >= size:
                made += size
                yield size, size
        yield n_rows, total - n_rows - made
