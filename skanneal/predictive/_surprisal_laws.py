"""The laws of the surprisals -log p_k(x) of rows x of a component k, by pattern of gaps.

Above its least value a surprisal is -h log B, B ~ Beta(a, b), for
Student's t of nu degrees of freedom and d cells (a = nu / 2, b = d / 2, h = a + b), so that T_k is
exact for one such row family. What is left of a `multivariate_t` where cells are missing is taken
to be Student's t, but with h larger by the factor by which complete rows are more surprising on
average. For sums over columns, and for complete rows of other row families, a gamma distribution
has the sum's least value, mean and variance, which are exact for Student's t and for levels, and
otherwise of a fixed sample: 64 from each component, fewer where there are more than 64 components
or rows are of many columns, and at least 8, whose mean surprisal has an error of a third of its
spread. A component's law comes from its own sample and those of 15 others, weighted for it: the
cost of all under all would grow with the square of the components, beyond that of a fit.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import digamma, logsumexp, polygamma

from ._patterns import distinct

SAMPLED = 64  # cells of each component, where the law of a surprisal is not known
LEAST_SAMPLED = 8  # cells of each component, where the limits below leave fewer
MOST_SAMPLED, MOST_CELLS = 4096, 2**24  # rows sampled from all components together, and their cells
TOGETHER = 16  # components that are sampled for each other
SEED = 0  # of these
DENSE_CELLS = 2**17  # drawn at a time of rows of counts, which are kept sparse


class Law(NamedTuple):
    """The law of a surprisal in every component, an array of shape (K + 1,) each.

    least, mean, variance: of the surprisal, the latter two of what it is above the least. beta:
    (a, b, h) if its law is known, else None.
    """

    least: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    beta: tuple | None = None

    @classmethod
    def of_beta(cls, least, a, b, h):
        mean = h * (digamma(a + b) - digamma(a))
        return cls(least, mean, h**2 * (polygamma(1, a) - polygamma(1, a + b)), (a, b, h))

    @classmethod
    def of_points(cls, surprisals, weights):
        """From points, (n_points, K + 1) both; the weights of each component sum to 1."""
        least = np.where(weights > 0, surprisals, np.inf).min(axis=0)
        above = np.where(weights > 0, surprisals - least, 0.0)
        mean = (weights * above).sum(axis=0)
        return cls(least, mean, (weights * (above - mean) ** 2).sum(axis=0))

    def __add__(self, other):
        parts = (one + two for one, two in zip(self[:3], other[:3]))
        return Law(*parts)


def nothing(view):
    """The law where no cell is observed."""
    return Law(*np.zeros((3, len(view.slots))))


class ViewTails:
    """The laws of surprisals in a view of a draw, by pattern of gaps.

    Parameters
    ----------
    view : View
    table : callable
        Makes a Table of the schema from encoded columns.
    schema : Schema
    """

    def __init__(self, view, table, schema):
        self.view, self.table, self.schema = view, table, schema
        self.columns = sorted(view.features)
        self.known = {}

    def laws(self, observed):
        """The laws of rows of several patterns, (n_patterns, n_columns): what `law` gives of each,
        where all patterns' cells of a row family are scored together."""
        for block in self.view.mixture.blocks:
            if block.joint and block.tail_exponent(1) is not None:
                masks = distinct(observed[:, block.columns])[0]
                masks = masks[masks.any(axis=1)]
                for mask, least in zip(masks, self.leasts_of_rows(block, masks)):
                    columns = [int(j) for j in block.columns[mask]]
                    self._once((block.family, *columns), self._of_row, block, columns, least)
        return [self.law(which) for which in observed]

    def law(self, observed):
        """The law of the surprisal of a row of which these columns are observed: (n_columns,)."""
        laws = []
        for block in self.view.mixture.blocks:
            columns = [int(j) for j in block.columns if observed[j]]
            if block.joint and columns:
                laws.append(self._once((block.family, *columns), self._of_row, block, columns))
            elif not block.joint:
                laws += [self._once(j, self._of_column, j) for j in columns]
        return sum(laws[1:], laws[0]) if laws else nothing(self.view)

    def _once(self, key, make, *arguments):
        if key not in self.known:
            self.known[key] = make(*arguments)
        return self.known[key]

    def _of_column(self, j):
        view, (block, f) = self.view, self.view.features[j]
        beta = block.excess_law(f)
        if beta is not None:
            return Law.of_beta(self.least_of_column(j), *self._of_slots(beta))
        levels = view.level_probabilities(j)
        if levels is not None:
            return Law.of_points(_surprisals(levels.T), levels.T)
        n_cells = len(block.columns)

        def scored(part, at, bits):
            own = int(np.flatnonzero(part.columns == j)[0])
            table = self._table({j: part.sample_feature(own, at, bits)})
            scores = np.zeros((table.n_rows, part.n_slots))
            part.score_feature(own, table, scores, 0, table.n_rows)
            return scores - np.reshape(view.log_slope(part, own, table, 0, table.n_rows), (-1, 1))

        return self._of_samples(block, n_cells, scored)

    def _of_row(self, block, columns, least=None):
        law = self._once(("cells", block.family, len(columns)), self._of_cells, block, len(columns))
        if law is not None:
            if least is None:
                (least,) = self.leasts_of_rows(block, np.isin(block.columns, columns)[None])
            return law._replace(least=least)
        n_cells = len(block.columns) if block.cells == "count_row" else 1

        def scored(part, at, bits):
            if block.cells == "count_row":
                pieces = np.array_split(at, 1 + len(at) * n_cells // DENSE_CELLS)
                rows = [csr_array(part.sample_rows(own, bits).astype(np.uint32)) for own in pieces]
                return row_scores(part, self._table({columns[0]: csr_array(vstack(rows))}))
            rows = part.sample_rows(at, bits)
            cells = {int(j): rows[:, i] for i, j in enumerate(part.columns) if j in columns}
            return row_scores(part, self._table(cells))

        return self._of_samples(block, n_cells, scored)

    def _of_cells(self, block, n_cells):
        """The law of so many cells of a row family above its least value, which depends on which
        they are; None if it is not known."""
        beta = self._beta_of_row(block, n_cells)
        return None if beta is None else Law.of_beta(0.0, *self._of_slots(beta))

    def _beta_of_row(self, block, n_cells):
        """(a, b, h) of so many cells of a row family; None if the law is neither known nor, where
        cells are missing, taken to be Student's t but for its scale, which is that of the sample of
        complete rows."""
        beta, h = block.excess_law(n_cells), block.tail_exponent(n_cells)
        if beta is not None or h is None or n_cells == len(block.columns):
            return beta
        a, b, _ = self._of_slots((h - 0.5 * n_cells, 0.5 * n_cells, h))
        return a, b, h * self._once(("scale", block.family), self._scale_of_rows, block)

    def _scale_of_rows(self, block):
        """How much larger a complete row's mean surprisal above that of its centre is than that of
        Student's t: (K + 1,)."""
        n_cells, columns = len(block.columns), [int(j) for j in block.columns]
        h = block.tail_exponent(n_cells)
        law = self._once((block.family, *columns), self._of_row, block, columns)
        (least,) = self.leasts_of_rows(block, np.ones((1, n_cells), dtype=bool))
        of_t = Law.of_beta(least, h - 0.5 * n_cells, 0.5 * n_cells, h).mean
        scale = (law.least + law.mean - least) / of_t
        return np.where(scale > 0.0, scale, 1.0)

    def least_of_column(self, j):
        """The surprisal of a number at its predictive mean: (K + 1,)."""
        view, (block, f) = self.view, self.view.features[j]
        centres, n = self._table({j: view.means(j)}), len(view.slots)
        scores = np.diag(view.cell_scores(j, centres, 0, n))
        return view.log_slope(block, f, centres, 0, n) - scores

    def leasts_of_rows(self, block, masks):
        """The surprisal of some cells of a row family at their predictive means.

        Parameters
        ----------
        block : a row family's
        masks : bool array of shape (n_patterns, n_columns of the block)
            Which cells there are.

        Returns
        -------
        leasts : ndarray of shape (n_patterns, K + 1)
        """
        return -block.log_centres(masks, self.view.slots)

    def _of_samples(self, block, n_cells, scored):
        """The law of a block's surprisals, or of one of its columns', from a fixed sample.

        scored : ``scored(part, at, bits)`` draws cells of the slots `at` of a part of the block,
            and gives their scores in all of its slots.
        """
        slots, bits = self.view.slots, np.random.PCG64(SEED)
        most = min(MOST_SAMPLED, MOST_CELLS // n_cells)
        n_each = np.clip(most // len(slots), LEAST_SAMPLED, SAMPLED)
        laws = []
        for part, n_own in self._once(("parts", block.family), self._parts, block):
            scores = scored(part, np.repeat(np.arange(n_own), n_each), bits)[:, :n_own]
            laws.append(Law.of_points(-scores, _shares(scores)))
        return Law(*(np.concatenate([law[i] for law in laws]) for i in range(3)))

    def _parts(self, block):
        """Blocks of some of the slots each, and how many."""
        table, slots = self._table({}), self.view.slots
        parts = np.array_split(slots, -(-len(slots) // TOGETHER))
        return [(type(block).from_arrays(block.to_arrays(own), table), len(own)) for own in parts]

    def _of_slots(self, beta):
        slots = self.view.slots
        return tuple(
            value[slots] if np.ndim(value) else np.full(len(slots), value) for value in beta
        )

    def _table(self, cells):
        """Rows of which some columns have these cells."""
        n_rows = next((values.shape[0] for values in cells.values()), 0)
        columns = self.schema.missing_cells(n_rows)
        for j, values in cells.items():
            columns[j] = values.astype(columns[j].dtype)
        return self.table(columns)


def row_scores(block, table):
    scores = np.zeros((table.n_rows, block.n_slots))
    block.score_rows(table, scores, 0, table.n_rows)
    return scores


def _surprisals(probabilities):
    with np.errstate(divide="ignore"):
        return -np.log(probabilities)


def _shares(scores):
    """For each component, how much each point counts: all were drawn from all components alike."""
    shares = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    return shares / shares.sum(axis=0)
