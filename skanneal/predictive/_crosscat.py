"""The queries that only a CrossCat answers: how columns depend on each other, and rows."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral

import numpy as np

from ..encoding import CollinearCodec
from ._dependence import dependences_of_draw
from ._information import mutual_information
from ._queries import MixtureQueries
from ._similarity import Memberships

MOST_BYTES = 1 << 30  # of a matrix of similarities
BLOCK_NUMBERS = 1 << 24  # similarities held at a time
TIE = 1e-15  # by which earlier rows go before later ones of equal similarity


class CrossCatQueries(MixtureQueries):
    """Answers of the draws of a CrossCat about rows and columns."""

    def dependence_probability(self, columns):
        """How probable it is that two columns are in one view, or in two that are linked, that both
        have to do with the components or have one law for both in each of them, and that these make
        them dependent. A column that others determine depends on these, and on what they do.

        Shape (n_compared, n_compared)."""
        positions, codecs = self.positions(columns, "columns"), self.encoder.codecs
        sources = {j: codecs[j].sources for j in positions if isinstance(codecs[j], CollinearCodec)}
        wide = [*positions, *sorted({i for of in sources.values() for i in of} - {*positions})]
        known = self._dependence_in_views(wide)
        for j, of in sources.items():
            own, others = wide.index(j), [wide.index(i) for i in of]
            known[own] = np.maximum(known[own], known[others].max(axis=0))
            known[:, own] = known[own]
        return known[: len(positions), : len(positions)]

    def _dependence_in_views(self, positions):
        """The same of columns that are modelled; 0 for the others."""
        at, places = self.encoder.apart.places(positions)
        schema = self.encoder.table_schema
        together = np.zeros((len(schema.dtypes), len(schema.dtypes)))
        predictor = self.predictor
        for views, links, weight in zip(predictor.draws, predictor.links, self.draw_weights):
            for own, others, both in dependences_of_draw(
                views, links, schema, set(places.tolist())
            ):
                together[np.ix_(own, others)] += weight * both
                if others is not own:
                    together[np.ix_(others, own)] += weight * both.T
        probabilities = np.zeros((len(positions), len(positions)))
        probabilities[np.ix_(at, at)] = together[np.ix_(places, places)] / self.draw_weights.sum()
        probabilities[np.equal.outer(positions, positions)] = 1.0
        return probabilities

    def mutual_information(self, columns, normalized, n_samples, seed):
        """Mutual information of each pair of columns, and the standard error of what is simulated.

        Both have the shape (n_compared, n_compared).
        """
        if not isinstance(n_samples, Integral) or n_samples < 2:
            raise ValueError(f"n_samples must be an integer above 1, got {n_samples!r}")
        positions = self.positions(columns, "columns")
        at, places = self.encoder.apart.places(positions)
        information, error = np.zeros((2, len(positions), len(positions)))
        information[np.ix_(at, at)], error[np.ix_(at, at)] = mutual_information(
            self.predictor, places.tolist(), int(n_samples), seed
        )
        if normalized:
            left = np.exp(-2 * information)
            information = np.sqrt(1 - left)
            error = np.divide(error * left, information, out=error, where=information > 0)
        return information, error

    def view_probabilities(self, columns):
        """For each view of the point estimate, the probability of each of its clusters."""
        table, views = self.table(columns), range(self.point.n_views)
        return [self.of_point.cluster_probabilities(table, v) for v in views]

    def row_similarity(self, one, two, columns):
        """How often two rows share a cluster: (one.n_rows, two.n_rows).

        one, two : Memberships
        """
        if 8 * one.n_rows * two.n_rows > MOST_BYTES:
            raise ValueError(
                f"The similarities of {one.n_rows} x {two.n_rows} rows would take "
                f"{8 * one.n_rows * two.n_rows / 2**30:.1f} GiB: name fewer rows, or ask "
                "most_similar_rows"
            )
        return one.similarity(two, self._of_views(columns), self.draw_weights)

    def _of_views(self, columns):
        """Positions of the columns whose views are to count."""
        positions = self.positions(columns, "columns")
        if not positions:
            raise ValueError("columns names no column, so that no view counts; None takes all")
        return positions

    def most_similar_rows(self, one, n_neighbors, columns):
        """Similarities and positions of the most similar training rows: (one.n_rows, n_neighbors).

        one : Memberships
        """
        two = self.training_rows(None, "others")
        most = two.n_rows - (one.positions is not None)
        if not most:
            raise ValueError("a training row has no neighbours: there is no other row")
        if not isinstance(n_neighbors, Integral) or not 1 <= n_neighbors <= most:
            raise ValueError(f"n_neighbors must be from 1 to {most}, got {n_neighbors!r}")
        used = self._of_views(columns)
        similarity = np.empty((one.n_rows, n_neighbors))
        positions = np.empty((one.n_rows, n_neighbors), dtype=np.int64)
        step = max(1, BLOCK_NUMBERS // two.n_rows)
        for start in range(0, one.n_rows, step):
            block = one.part(slice(start, start + step))
            found = block.similarity(two, used, self.draw_weights)
            order = found - TIE * np.arange(two.n_rows)
            if block.positions is not None:
                order[np.arange(block.n_rows), block.positions] = -np.inf
            near = np.argpartition(-order, n_neighbors - 1, axis=1)[:, :n_neighbors]
            rank = np.argsort(-np.take_along_axis(order, near, axis=1), axis=1, kind="stable")
            near = np.take_along_axis(near, rank, axis=1)
            positions[start : start + step] = near
            similarity[start : start + step] = np.take_along_axis(found, near, axis=1)
        return similarity, positions

    def new_rows(self, columns):
        """Memberships of rows that are given by their encoded columns."""
        return Memberships.of_table(self.draws, self.predictor, self.table(columns))

    def training_rows(self, rows, what):
        """Memberships of training rows, by position or mask; None takes all of them."""
        n_rows = len(self.point.labels)
        if rows is None:
            return Memberships.of_training_rows(self.draws, np.arange(n_rows))
        rows = np.asarray(rows)
        if rows.dtype == bool and rows.shape == (n_rows,):
            rows = np.flatnonzero(rows)
        if (
            rows.dtype.kind not in "iu"
            or rows.ndim > 1
            or np.any((rows < -n_rows) | (rows >= n_rows))
        ):
            raise ValueError(
                f"{what} must be positions or a mask of the {n_rows} training rows, or a table"
            )
        return Memberships.of_training_rows(self.draws, np.atleast_1d(rows) % n_rows)
