"""Particles that see one row after another, and tell the evidence."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval

from ._linear_anneal import LinearAnneal


class SequentialMonteCarlo(LinearAnneal):
    """Show particles one row after another, weight them by their predictions, and resample.

    This is data-tempered sequential Monte Carlo [1]_. Every chain is an independent island. Its
    particles begin as draws from the prior, without rows, and all of them take in the same rows in
    the same order, which differs from island to island. A row multiplies the weight of each
    particle by the density that the particle gives it. If the effective sample size falls below a
    share `min_ess` of the particles, they are resampled (systematic resampling). Between the rows
    each particle is moved on the rows so far, by moves that leave the posterior of these rows
    invariant. When all rows are in, one particle is drawn by weight, and continues as the chain.

    The mean of the weights is an unbiased estimate of the evidence, for any number of particles. An
    estimator with this schedule has `log_evidence_`, and runs `n_particles` times the sweeps that
    are made before the last row is in.

    Parameters
    ----------
    n_particles : int, default=32
        Number of particles of each chain.
    n_first : int, default=256
        Number of particles while there are fewer than 8 rows, if this is more than `n_particles`:
        half as many from 8 rows on, a quarter from 16, and so on down to `n_particles`. The first
        rows show which hyperparameters are good, and particles cost little there.
    n_sweeps : float, default=20
        Assignments of one particle divided by rows, final sweeps included. One sweep takes the rows
        in. The other sweeps move the rows so far: after each row that enters while these are few,
        and later whenever the share of the assignments made so far asks for a sweep.
    final_sweeps : float, default=2
        Sweeps of all rows at the end, of the particle that is left; at most ``n_sweeps - 1``.
    min_ess : float, default=0.5
        Effective sample size, as a share of the particles, below which they are resampled. 1
        resamples after every row, 0 never.
    max_time : None
        There is no time limit, because the evidence would depend on the clock.
    selection : {"random", "window", "stratified"}, default="random"
        The order in which rows enter.

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
    runner = "island"
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
        n_particles: int = 32,
        n_first: int = 256,
        n_sweeps: float | str | None = 20,
        final_sweeps: float = 2,
        min_ess: Any = 0.5,
        max_time: float | None = None,
        selection: str = "random",
    ) -> None:
        super().__init__(
            n_sweeps=n_sweeps, final_sweeps=final_sweeps, max_time=max_time, selection=selection
        )
        self.n_particles = n_particles
        self.n_first = n_first
        self.min_ess = min_ess

    def particles(self, size: Any) -> Any:
        """Return the number of particles when the subsample has a number of rows.

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

    def stages(self, n_rows: Any) -> Any:
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
