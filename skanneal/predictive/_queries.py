"""The queries that every fitted mixture answers.

The estimator checks and encodes a query; this module answers it for encoded columns.
"""

# SPDX-License-Identifier: BSD-3-Clause

from functools import cached_property, partial, reduce
from numbers import Integral

import numpy as np

from ..encoding import (
    CollinearCodec,
    check_determined,
    check_whole_rows,
    encode_given,
    put_given,
)
from ..families import Table
from ..parallel import OfTurn, OfTurns, seed_below, seeds_below
from ._determined_spread import determined_spread
from ._margins import Margins, rows_of_mixture
from ._predictor import NOTHING, Predictor
from ._tail import outlier_scores


class MixtureQueries:
    """Answers of the draws of a fit about rows.

    Parameters
    ----------
    draws : list of Draw or CrossCatDraw
        Of all chains.
    point : Draw or CrossCatDraw
        The point estimate.
    encoder : Encoder
    draw_weights : float64 array of shape (n_draws,), default=None
        How much each draw counts, above 0; by default all count 1.
    margins : Margins, default=None
        Of the columns whose margins are those of the data; by default there are none.
    reach : dict of int to (float, float), default={}
        By place in the Table, how far numbers that are drawn may lie from those of the fit.
    """

    def __init__(self, draws, point, encoder, draw_weights=None, margins=None, reach=NOTHING):
        self.draws, self.point, self.encoder, self.reach = draws, point, encoder, reach
        self.margins = Margins() if margins is None else margins
        self.draw_weights = np.ones(len(draws)) if draw_weights is None else draw_weights

    @cached_property
    def predictor(self):
        """The predictor that averages over all draws."""
        return Predictor(self.draws, self.encoder.table_schema, self.draw_weights)

    @cached_property
    def law(self):
        """The predictor of the law that has the margins which were asked for, in the cells of the
        mixture: of all draws, or of those that have been warped."""
        if not self.margins.changed:
            return self.predictor
        if self.margins.law is None:
            self.margins.law = self._of(*self._draws_of_law)
        return self.margins.law

    @cached_property
    def maps(self):
        """By place in the Table, from cells of the mixture to those of the data."""
        return self.margins.maps(self.law) if self.margins.columns else {}

    @property
    def _draws_of_law(self):
        """The draws that `law` averages over, and their weights."""
        if not self.margins.changed:
            return self.draws, self.draw_weights
        return [self.draws[d] for d in self.margins.used], self.draw_weights[self.margins.used]

    def _of(self, draws, weights):
        """The predictor of some draws; those of them that the margins are made from are warped."""
        own = Predictor(draws, self.encoder.table_schema, weights)
        of_views = zip(self.margins.counts, self.margins.held, self.margins.edges)
        known = {id(self.draws[d]): of for d, of in zip(self.margins.used, of_views)}
        return own.warped([known.get(id(draw)) for draw in draws]) if known else own

    @cached_property
    def of_point(self):
        """The predictor of the point estimate alone."""
        return Predictor([self.point], self.encoder.table_schema)

    def table(self, columns):
        """Encoded columns as rows."""
        table = Table(*self.encoder.table_schema)
        table.append(self.encoder.apart.stored(columns))
        return table

    def modelled(self, columns):
        """Encoded columns as rows of the mixture, and by place the log slopes of their cells: what
        a log density of the mixture's cells lacks to be one of the user's numbers."""
        if not self.maps:
            return self.table(columns), {}
        return rows_of_mixture(self.law, self.maps, self.encoder.apart.stored(columns))

    def positions(self, columns, what):
        """Positions of the columns that a user names; None names all."""
        if columns is None:
            return list(range(self.encoder.n_columns))
        return self.encoder.names.positions(columns, what)

    def cluster_probabilities(self, columns):
        """Probability of each cluster of the point estimate: (n_rows, n_clusters)."""
        return self.of_point.cluster_probabilities(self.table(columns), self.point.main_view)

    def new_cluster_probability(self, columns):
        """Probability that each row opens a cluster of its own: (n_rows,)."""
        return self.predictor.new_cluster_probability(self.table(columns))

    def log_density(self, columns, given=None):
        """Log predictive density of each row, or of its other cells given those of `given`."""
        apart, encoder = self.encoder.apart, self.encoder
        positions = [] if given is None else self.positions(given, "given")
        check_whole_rows(encoder, positions, "given")
        check_determined(encoder, positions, "given")
        columns = encoder.parts.left_out(columns, positions)
        rows, slopes = self.modelled(columns)
        log_density = self.law.log_density(rows)
        if given is None:
            return sum(slopes.values(), log_density) + apart.log_density(columns)
        known = encoder.missing_columns(len(log_density))
        for j in encoder.known_by(positions):
            known[j] = columns[j]
        log_density -= self.law.log_density(self.modelled(known)[0])
        of_others = (of for place, of in slopes.items() if apart.kept[place] not in positions)
        return sum(of_others, log_density) + apart.log_density(columns, positions)

    def sample(self, n_samples, given, seed, n_replicates=None):
        """Rows from the posterior predictive, in the container of the fit; n_replicates times, each
        from one draw, in a list, if this is not None."""
        _check_positive(n_samples, "n_samples")
        if given is not None and not hasattr(given, "items"):
            raise TypeError(f"given must be a mapping of columns to values, got {given!r}")
        encoder, n = self.encoder, int(n_samples)
        given = {} if given is None else given
        known = encode_given(encoder, given)

        def rows(predictor, own_seed):
            columns = self.simulated(predictor, self.modelled(known)[0], own_seed, n)
            return encoder.decode(put_given(encoder, columns, known, given, n))

        if n_replicates is None:
            return rows(self.law, seed)
        return [rows(*turn) for turn in self.turns(n_replicates, seed, "n_replicates")]

    def simulated(self, predictor, table, seed, n):
        """n rows given the cells of the mixture's one: columns of numbers in the user's units and
        codes, rounded as those of the fit, None for a column set apart."""
        apart, encoder = self.encoder.apart, self.encoder
        columns = predictor.simulate(table, seed, n, self.maps, self.reach)
        return encoder.rounded(apart.spread(columns, lambda j: None))

    def surprisal(self, columns):
        """-log p(cell | the row's other cells) in nats: (n_rows, n_columns).

        A date has parts for the other cells, not for itself."""
        apart, parts = self.encoder.apart, self.encoder.parts
        rows, slopes = self.modelled(columns)
        surprisals = self.law.cell_surprisals(rows, len(apart.kept)).T
        dates = {codec.source for codec in parts.codecs}
        for place in np.flatnonzero(np.isin(apart.kept, [*dates])):
            others = parts.left_out(columns, dates - {apart.kept[place]})
            alone = self.law.cell_surprisals(self.modelled(others)[0], len(apart.kept))
            surprisals[place] = alone[:, place]
        for place, of_column in slopes.items():
            surprisals[place] -= of_column
        return np.column_stack(apart.spread(surprisals, lambda j: apart.surprisal(j, columns[j])))

    def column_surprisal(self, columns):
        """`surprisal`, but of all that is known of a column: (n_rows, n_columns).

        A date counts with its parts; and in a column with an indicator it counts whether the cell
        is missing, so that a missing one has a surprisal, too."""
        encoder, surprisals = self.encoder, self.surprisal(columns)
        several = [j for j in range(encoder.n_columns) if len(encoder.known_by([j])) > 1]
        if not several:
            return surprisals

        def log_density(columns):
            rows, slopes = self.modelled(columns)
            return sum(slopes.values(), self.law.log_density(rows))

        whole, missing = log_density(columns), encoder.missing_columns(len(surprisals))
        for j in several:
            others = list(columns)
            for at in encoder.known_by([j]):
                others[at] = missing[at]
            apart = np.nan_to_num(surprisals[:, j]) if j in encoder.apart.out else 0.0
            surprisals[:, j] = log_density(others) - whole + apart
        return surprisals

    def without(self, table, rows):
        """Yield these queries, as to cells, of draws that have not seen a training row, one after
        another.

        Parameters
        ----------
        table : Table
            The training rows.
        rows : sequence of int
        """
        other = MixtureQueries(self.draws, self.point, self.encoder, self.draw_weights)
        other.maps = self.maps
        for other.law in self.law.without(self._draws_of_law[0], table, rows):
            yield other

    def outlier_scores(self, columns):
        """How improbable rows as odd as these are: (n_rows,).

        In a column that is set apart, a value that none of n rows had gets the probability
        1 / (n + 2), by Laplace's rule of succession, not 0: the score stays finite.
        """
        scores = outlier_scores(self.predictor, self.table(columns))
        n_other = sum(columns[j] == 1.0 for j in self.encoder.apart.out)
        return scores + n_other * np.log(len(self.point.labels) + 2)

    def fill(self, columns, strategy="mean"):
        """What to put into missing cells.

        Parameters
        ----------
        columns : list of ndarray of shape (n_rows,)
            Encoded.
        strategy : {"mean", "mode"}, default="mean"

        Returns
        -------
        values : list of ndarray of shape (n_missing,)
            For each column its missing cells': numbers in the user's units, codes.
        spreads : list of ndarray of shape (n_missing,)
            Standard deviations, or one minus the level's probability.
        missing : list of ndarray of bool of shape (n_rows,)
        """
        missing, table, gaps = self._gappy_rows(columns)
        if table is None:
            return [np.empty(0)] * len(missing), [np.empty(0)] * len(missing), missing
        values, spreads = self.law.fill(table, gaps, strategy == "mode", self.maps)
        codecs, apart = self.encoder.codecs, self.encoder.apart
        spreads = apart.spread(spreads, lambda j: np.zeros(missing[j].sum()))[: len(missing)]
        draws = partial(self._repeated, columns)
        for j in apart.out:
            if isinstance(codecs[j], CollinearCodec):
                whole = self._whole(columns, apart.spread(values, lambda j: None), missing)
                of_rows = determined_spread(codecs[j], codecs, whole, missing, spreads, draws)
                spreads[j] = of_rows[missing[j]]
        return self._with_apart(values, columns, missing), spreads, missing

    def _repeated(self, columns, rows, n):
        """n times a joint draw of the missing cells of some rows, in the user's units."""
        table, apart = self.modelled(columns)[0].take(rows), self.encoder.apart
        for seed in range(n):
            cells = self.law.simulate(table, seed, None, self.maps, self.reach)
            yield apart.spread(cells, lambda j: None)

    def imputations(self, columns, n_imputations, seed):
        """What to put into missing cells, several times.

        Each imputation uses one draw, and draws the weights and the parameters of its components
        once. Then each row draws its component given its cells, and its missing cells from the
        component. So uncertainty that rows share stays shared.

        Parameters
        ----------
        columns : list of ndarray of shape (n_rows,)
            Encoded.
        n_imputations : int
        seed : SeedSequence

        Returns
        -------
        values : list of list of ndarray of shape (n_missing,)
            For each imputation what `fill` gives.
        missing : list of ndarray of bool of shape (n_rows,)
        """
        turns = self.turns(n_imputations, seed, "n_imputations")
        return [self.drawn(columns, *turn)[0] for turn in turns], self.encoder.missing(columns)

    def drawn(self, columns, predictor, seed):
        """One imputation by one of `turns`: values and missing cells, as those of `fill`."""
        missing, table, gaps = self._gappy_rows(columns)
        if table is None:
            return [np.empty(0)] * len(missing), missing
        cells = predictor.simulate(table, seed, None, self.maps, self.reach)
        values = [of_column[gap] for of_column, gap in zip(cells, gaps)]
        return self._with_apart(values, columns, missing, rounded=True), missing

    def answer(self, columns, cells, rounded):
        """Values and missing cells, as those of `fill`, where others say what is in cells of some
        columns: by place in the Table, in cell units. The other columns have 0 in theirs."""
        missing, values = self.encoder.missing(columns), []
        for place, j in enumerate(self.encoder.apart.kept.tolist()):
            of_place = cells.get(place, np.zeros(len(missing[j])))
            values.append(self.predictor.in_units(place, of_place[missing[j]]))
        return self._with_apart(values, columns, missing, rounded), missing

    def turns(self, n, seed, name):
        """n predictors of one draw each, with the parameters of its components drawn, and a seed of
        its own each time; `name` is what users call n. They are spread evenly over the draws of all
        chains, so that none comes twice before all have come."""
        _check_positive(n, name)
        draws = self._draws_of_law[0]
        return [(self.of_draw(draws[at], own), own) for at, own in self.draws_in_turn(n, seed)]

    def draws_in_turn(self, n, seed):
        """Places of draws, and the seeds, of the n `turns`."""
        weights = self._draws_of_law[1]
        first, seeds = seed_below(seed, OfTurns.FIRST), seeds_below(seed, OfTurns.TURNS, n)
        start = np.random.Generator(np.random.PCG64(first)).random()
        places = (start + np.arange(n)) / n
        shares = np.cumsum(weights) / weights.sum()
        return list(zip(np.searchsorted(shares[:-1], places, side="right").tolist(), seeds))

    def of_draw(self, draw, seed):
        """The predictor of one draw whose components have drawn weights and parameters."""
        alone = self._of([draw], np.ones(1))
        return alone.with_parameters([draw], seed_below(seed, OfTurn.PARAMETERS))

    def _gappy_rows(self, columns):
        """Missing cells, and the rows that have some as a Table (None without any) and theirs."""
        missing = self.encoder.missing(columns)
        rows = np.flatnonzero(reduce(np.logical_or, missing))
        if not len(rows):
            return missing, None, None
        gaps = [missing[j][rows] for j in self.encoder.apart.kept]
        return missing, self.modelled(columns)[0].take(rows), gaps

    def _with_apart(self, values, columns, missing, rounded=False):
        """Values of the columns that are modelled, rounded or not, and of those set apart."""
        apart = self.encoder.apart
        values = apart.spread(values, lambda j: None)[: len(missing)]
        values = self.encoder.rounded(values) if rounded else values
        whole = self._whole(columns, values, missing) if apart.out else None
        for j, value in self.encoder.set_apart(whole).items():
            values[j] = np.full(len(missing[j]), value)[missing[j]]
        return values

    def _whole(self, columns, values, missing):
        """The columns of the Table in the user's units, gaps filled; None for levels."""
        out, schema = [None] * len(missing), self.encoder.table_schema
        for place, j in enumerate(self.encoder.apart.kept):
            if schema.dtypes[place] == "f4":
                out[j] = self.predictor.in_units(place, columns[j].astype(np.float64))
                out[j][missing[j]] = values[j]
        return out

    @staticmethod
    def uncertainty(spreads, missing):
        """The spreads that `fill` gives, each in its cell: (n_rows, n_columns); 0 elsewhere."""
        out = np.zeros((len(missing[0]), len(missing)))
        for j, (mask, spread) in enumerate(zip(missing, spreads)):
            out[mask, j] = spread
        return out


def _check_positive(n, name):
    """Raise if a number of tables or rows is none."""
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"{name} must be a positive integer, got {n!r}")
