"""What the models of an imputer, and regressions on top of them, put into the gaps of a table.

Numbers come first. Levels follow, if they are drawn given the numbers that were drawn, and are
corrected by their regressions (predictive/_regressed_levels.py). Where a mixture of few components
has filled the numbers, these are then filled again, by a regression on the levels
(predictive/_regressed_numbers.py); and if they are drawn, so are the levels, given these.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..encoding import open_table
from ..parallel import OfFit, OfTurn, seed_below, spawn_seeds
from ..predictive._regressed_levels import RegressedLevels
from ..predictive._regressed_numbers import RegressedNumbers


class Fills:
    """Fitted models, and regressions that are fitted here.

    Answers are lists of (column, where its cells are missing, values for these).

    Parameters
    ----------
    model : DefaultModel
    rows : container
        Of the fit, as `open_table` takes it.
    regressed : bool
        Whether there are regressions.
    """

    def __init__(self, model, rows, regressed):
        self.first, self.second, self.of_second, self.ranges = model
        self.levels = self.numbers = None
        queries = self._queries()
        if not regressed or not queries[-1].encoder.table_schema.n_levels.any():
            return
        gappy = queries[0].encoder.encode(None, rows)
        whole = self._filled(rows, queries[-1], self._expected_numbers(gappy))
        cells = (queries[-1].encoder.encode(None, of) for of in (rows, whole))
        self.levels = RegressedLevels(queries[-1], *cells, self.of_second or None)
        if self.of_second and RegressedNumbers.apply(queries[0], self.levels):
            whole = queries[0].encoder.encode(None, whole)
            places = {id(draw): at for at, draw in enumerate(queries[0].draws)}
            of_chains = [[places.get(id(of)) for of in chain] for chain in self.first.draws_]
            chains = [chain for chain in of_chains if None not in chain]
            seed = self.first._seed(OfFit.REGRESSION)
            self.numbers = RegressedNumbers(queries[0], self.levels, gappy, whole, chains, seed)

    def most_probable(self, rows, strategy):
        """One value for each gap, on average over the draws; `strategy` as of an imputer."""
        queries = self._queries()
        columns = [of.encoder.encode(None, rows) for of in queries]
        found = self._plausible(queries[0], *queries[0].fill(columns[0], strategy)[::2])
        if self.second is not None:
            own = self._plausible(queries[1], *queries[1].fill(columns[1], strategy)[::2])
            found = self._both(found, own)
        if self.levels is None:
            return found
        known = self.levels.known(queries[-1], *self._gappy_and_whole(rows, found))
        again = self._answers(queries[-1], *self.levels.most_probable(queries[-1], known))
        found = _replaced(found, again)
        if self.numbers is None:
            return found
        of_levels = [of for of in found if of[0] in self.of_second]
        filled = queries[0].encoder.encode(None, open_table(rows, "X").fill(of_levels))
        numbers = self.numbers.most_probable(queries[0], filled, known, strategy == "mode")
        return self._both(self._plausible(queries[0], *numbers), of_levels)

    def drawn(self, rows, n, random_state):
        """n times a draw for each gap, of one draw of each model at a time: a list of answers."""
        queries, seeds = self._queries(), spawn_seeds(random_state, 2)
        turns = [of.turns(n, seed, "n_imputations") for of, seed in zip(queries, seeds)]
        columns, several = [of.encoder.encode(None, rows) for of in queries], []
        for t, at in enumerate(queries[0].draws_in_turn(n, seeds[0])):
            predictor, seed = turns[-1][t]
            found = self._answers(queries[0], *queries[0].drawn(columns[0], *turns[0][t]))
            regressed = None
            if self.levels is not None:
                regressed = self.levels.draw(queries[-1], predictor, seed, columns[-1])
            if self.numbers is not None:
                before = seed_below(seed, OfTurn.BEFORE)
                whole = self._with_levels(rows, found, predictor, before, regressed)
                known = self.levels.complete(queries[-1], self._gappy_and_whole(rows, whole)[1])
                drawn = self.numbers.drawn(queries[0], *at, columns[0], known, regressed.of_fit)
                found = self._answers(queries[0], *drawn)
            several.append(self._with_levels(rows, found, predictor, seed, regressed))
        return several

    def _with_levels(self, rows, found, predictor, seed, regressed):
        """Answers of the first model, and others for levels, drawn given these."""
        queries = self._queries()[-1]
        if self.second is not None:
            given = self._filled(rows, queries, [of for of in found if self._is_first(of)])
            drawn = queries.drawn(queries.encoder.encode(None, given), predictor, seed)
            found = self._both(found, self._answers(queries, *drawn))
        if regressed is not None:
            both = self._gappy_and_whole(rows, found)
            found = _replaced(
                found, self._answers(queries, *self.levels.drawn(queries, regressed, seed, *both))
            )
        return found

    def _queries(self):
        return [of._queries() for of in (self.first, self.second) if of is not None]

    def _is_first(self, answer):
        """Whether an answer is for a column that the first model fills."""
        return answer[0] not in self.of_second

    def _both(self, first, second):
        """The answers of both models, each for the columns that it fills."""
        own = [of for of in first if self._is_first(of)]
        return own + [of for of in second if not self._is_first(of)]

    @staticmethod
    def _answers(queries, values, missing):
        return queries.encoder.replacements(values, missing)

    def _plausible(self, queries, values, missing):
        """Answers whose numbers are within the ranges that were observed."""
        within = [
            np.clip(of, *self.ranges[j]) if j in self.ranges and not codec.n_levels else of
            for j, (of, codec) in enumerate(zip(values, queries.encoder.codecs))
        ]
        return self._answers(queries, within, missing)

    def _expected_numbers(self, columns):
        """The first model's answers without what they say of identifiers."""
        queries = self._queries()[0]
        values, _, missing = queries.fill(columns)
        values = [of[: 0 if np.isnan(of).any() else None] for of in values]
        return self._answers(queries, values, missing)

    def _gappy_and_whole(self, rows, found):
        """The rows without and with answers, as the model of levels encodes them."""
        queries = self._queries()[-1]
        filled = self._filled(rows, queries, found)
        return [queries.encoder.encode(None, of) for of in (rows, filled)]

    def _filled(self, rows, queries, found):
        """The rows with answers for their gaps, as a model reads them: numbers within the observed
        range, since it may take logarithms, and whole ones where it counts."""
        readable, codecs = [], queries.encoder.codecs
        for j, mask, values in found:
            if j in self.ranges and values.dtype.kind in "fiu" and not codecs[j].n_levels:
                values = np.clip(values, *self.ranges[j])
                counts = getattr(codecs[j], "dtype", "f4") != "f4"
                values = np.rint(values) if counts else values
            readable.append((j, mask, values))
        return open_table(rows, "X").fill(readable)


def _replaced(found, again):
    """Answers, with others in the place of those for the same columns."""
    others = {of[0]: of for of in again}
    return [others.get(of[0], of) for of in found]
