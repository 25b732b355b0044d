"""CrossCatImputer: gaps filled by a mixture or a CrossCat, as a step of a pipeline."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Number
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import MissingIndicator
from sklearn.utils._missing import is_scalar_nan
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from .._native._doc_link import DocLink
from .._native._types import Seed, TableLike
from .._native._warning import warn
from ..encoding import open_table
from ._base_chains import BaseChains
from ._base_table import BaseTable
from ._callbacks import CallbackSupportMixin, handed_on
from ._fit_context import validated
from ._imputer_fills import Fills
from ._imputer_model import DefaultModel, default_model


class CrossCatImputer(TransformerMixin, CallbackSupportMixin, DocLink, BaseEstimator):
    """Fill gaps with the values that a mixture expects, given the rest of the row.

    Columns may hold numbers, categories, booleans and counts. `transform` returns a table of the
    same type, in which observed cells are unchanged.

    Parameters
    ----------
    estimator : CrossCatPY, AnnealedDPMixture or None, default=None
        The model; a copy is fitted. With one that you give, fills are those of its `impute`. None
        chooses: columns of numbers, 1 to 100, have full covariances ("multivariate_normal"; or
        "multivariate_log_normal", where logarithms of some go better along a line with the others)
        in an `AnnealedDPMixture` of few clusters. A `CrossCatPY` fills the others, among them
        numbers of two values that repeat. Where there is a single column, or no column of numbers,
        or more than 100, ``CrossCatPY()`` fills everything. Regressions correct what these models
        say: of numbers linear ones on the levels, of levels logistic ones on all other columns,
        which hold where they depend on them too weakly for the models to notice. "mean" and "mode"
        then stay within the range of the cells that fit observed.
    strategy : {"mean", "mode", "sample"}, default="mean"
        What fills a gap, given the row's other cells. "mean": the posterior mean of a number (of an
        amount, where its logarithms are described, that of the logarithm), or the most probable
        level. "mode": for a number the most probable one of the centres of the clusters (given the
        row's other cells, where these have full covariances), since "mean" may fall between the
        clusters. "sample": a random draw, jointly for all gaps of the table: the only one of
        ``imputations(X, 1)``.
    missing_values : int, float, str, numpy.nan, None or pandas.NA, default=numpy.nan
        The value that stands for a missing cell. NaN, None and pandas.NA are equivalent; with any
        other value none of these may occur.
    add_indicator : bool, default=False
        Whether to append, for each column with gaps in fit, a column that says where its gaps were.
    keep_empty_features : bool, default=False
        Whether to keep columns without an observed cell in fit; their gaps are filled with 0.
        Otherwise they are dropped.
    max_time : float or None, default=None
        Seconds of wall clock that the estimator's fit may take; where None chooses two, each has
        half of them. It replaces the estimator's own `max_time`.
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        Randomness of the strategy "sample", and of the estimator if it has no `random_state` of its
        own.

    Attributes
    ----------
    estimator_ : CrossCatPY or AnnealedDPMixture
        The model, fitted to the columns with observed cells.
    estimator_of_levels_ : CrossCatPY or None
        The model of what `estimator_` does not fill, fitted to the same columns; None if it fills
        everything.
    indicator_ : MissingIndicator or None
        The transformer that says where the gaps were, if `add_indicator` is true.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had names.

    See Also
    --------
    CrossCatPY.impute : The same with uncertainty.
    sklearn.impute.IterativeImputer : One regression per column of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal import CrossCatImputer
    >>> rng = np.random.default_rng(0)
    >>> side = rng.choice([-4.0, 4.0], size=(200, 1))
    >>> X = side + 0.1 * rng.normal(size=(200, 3))
    >>> X[0] = [4.0, 4.1, np.nan]
    >>> filled = CrossCatImputer(random_state=0).fit_transform(X)
    >>> bool(abs(filled[0, 2] - 4.0) < 0.1)
    True
    """

    _parameter_constraints: dict = {
        "estimator": [BaseTable, None],
        "strategy": [StrOptions({"mean", "mode", "sample"})],
        "missing_values": "no_validation",
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
        "max_time": BaseChains._parameter_constraints["max_time"],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        strategy: str = "mean",
        missing_values: Any = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        max_time: float | None = None,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.strategy = strategy
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.max_time = max_time
        self.random_state = random_state

    @validated
    def fit(self, X: TableLike, y: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Never changed.
        y : None
            Not used.

        Returns
        -------
        self : CrossCatImputer

        Raises
        ------
        ValueError, TypeError
            As the estimator's fit does; also if no cell is observed, or if a column has the name of
            an indicator.
        """
        table = open_table(X, "X")
        missing = self._missing(table)
        if self.add_indicator and table.names is not None:
            _check_names(table.names, missing)
        observed = np.array([not mask.all() for mask in missing])
        if not observed.any():
            raise ValueError("X has no observed cell: there is nothing to fit.")
        if not (observed.all() or self.keep_empty_features):
            names = ", ".join(table.label(j) for j in np.flatnonzero(~observed))
            warn(f"Dropped, as no cell is observed: {names}.")
        blanked = self._blanked(table, missing, np.flatnonzero(observed))
        if self.estimator is None:
            model = default_model(open_table(blanked, "X"))
        else:
            model = DefaultModel(clone(self.estimator), None, [], {})
        models = [model.first] if model.second is None else [model.first, model.second]
        for estimator in models:
            if estimator.random_state is None:
                estimator.set_params(random_state=self.random_state)
            if self.max_time is not None:
                estimator.set_params(max_time=self.max_time / len(models))
        with handed_on(self, model.first):
            for estimator in models:
                estimator.fit(blanked)
        fills = Fills(model, blanked, regressed=self.estimator is None)
        indicator = None
        if self.add_indicator:
            indicator = MissingIndicator(error_on_new=False).fit(_gaps(missing))
        validate_data(self, X, reset=True, skip_check_array=True)
        self.estimator_, self.estimator_of_levels_ = model.first, model.second
        self.indicator_, self._observed = indicator, observed
        self._fills = fills
        return self

    def transform(self, X: TableLike) -> Any:
        """Fill the gaps.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Not changed.

        Returns
        -------
        filled : ndarray or frame
            Of the type of X (an array for a list), with its dtypes wherever they can hold the
            answers: fractions make a column of integers one of floats.
        """
        self._validate_params()
        if self.strategy == "sample":
            return self.imputations(X, 1)[0]
        return self._filled(X, lambda rows: [self._fills.most_probable(rows, self.strategy)])[0]

    def imputations(self, X: TableLike, n_imputations: int = 5) -> Any:
        """Fill the gaps several times, each time by draws from the posterior.

        For multiple imputation, analyse each table and pool the results (`skanneal.summary.pool`).
        Each table is made from one draw of the fit, with weights and parameters of the components
        and coefficients of the regressions that are drawn once; the draws take turns, whatever the
        strategy. Numbers are not kept within the observed range.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Not changed.
        n_imputations : int, default=5
            How many tables. Quantiles over 50 or more are intervals.

        Returns
        -------
        filled : list of n_imputations ndarrays or frames
            Tables of the form that `transform` returns. The spread between them is that of the
            posterior, as for the estimator's `impute`.
        """
        return self._filled(
            X, lambda rows: self._fills.drawn(rows, n_imputations, self.random_state)
        )

    def _filled(self, X, fill):
        """X once for each list of values that ``fill(rows)`` gives, rows having blank gaps."""
        check_is_fitted(self)
        table = open_table(X, "X")
        validate_data(self, X, reset=False, skip_check_array=True)
        missing, used = self._missing(table), np.flatnonzero(self._observed)
        return [
            self._with_values(table, missing, [(used[j], *of_column) for j, *of_column in found])
            for found in fill(self._blanked(table, missing, used))
        ]

    def _with_values(self, table, missing, replacements):
        """The table with these values for its gaps, and what the parameters ask for beside."""
        kept = np.flatnonzero(self._observed)
        if self.keep_empty_features:
            kept = np.arange(len(missing))
            empty = ((j, missing[j]) for j in np.flatnonzero(~self._observed))
            replacements += [(j, mask, np.zeros(mask.sum())) for j, mask in empty if mask.any()]
        filled = open_table(table.fill(replacements), "X").select(kept)
        if self.indicator_ is not None:
            names = self.indicator_.get_feature_names_out(self._names_in()).tolist()
            shown = self.indicator_.transform(_gaps(missing))
            filled = open_table(filled, "X").append(names, list(shown.T))
        return _as_array(filled) if isinstance(filled, list) else filled

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that `transform` gives.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X, if it had none.

        Returns
        -------
        names : ndarray of str objects
            The names of the columns, followed by those of the indicator columns,
            "missingindicator_" and the name of the column.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        kept = names if self.keep_empty_features else names[self._observed]
        if self.indicator_ is None:
            return kept
        return np.concatenate([kept, self.indicator_.get_feature_names_out(names)])

    def _names_in(self):
        """The columns' names; made up if X has none."""
        return _check_feature_names_in(self, None)

    def _missing(self, table):
        """A mask per column."""
        if not (isinstance(self.missing_values, Number | str) or _is_missing(self.missing_values)):
            raise ValueError(
                f"missing_values must be a number, text, None or pandas.NA, got "
                f"{self.missing_values!r}"
            )
        masks = []
        for column in map(table.column, range(table.shape[1])):
            none = np.zeros(table.shape[0], dtype=bool)
            gaps = none if column.missing is None else column.missing
            if _is_missing(self.missing_values):
                masks.append(gaps)
                continue
            if gaps.any():
                raise ValueError(
                    f"Input X contains NaN in {column.label}, but missing_values="
                    f"{self.missing_values!r}"
                )
            if column.levels is None:
                number = isinstance(self.missing_values, Number)
                masks.append(column.values == self.missing_values if number else none)
            elif self.missing_values in column.levels:
                masks.append(column.values == column.levels.index(self.missing_values))
            else:
                masks.append(none)
        return masks

    def _blanked(self, table, missing, used):
        """Return the used columns, with NaN or None in the missing cells."""
        if not _is_missing(self.missing_values):
            replacements = [
                (
                    j,
                    missing[j],
                    np.full(missing[j].sum(), None if table.column(j).levels else np.nan),
                )
                for j in used
                if missing[j].any()
            ]
            table = open_table(table.fill(replacements), "X")
        return table.select(used)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _check_names(names, missing):
    """Raise an error if an indicator would have the name of a column."""
    for name, mask in zip(names, missing):
        own = f"missingindicator_{name}"
        if mask.any() and own in names:
            raise ValueError(
                f"X has a column {own!r}, which add_indicator=True gives to the indicator of "
                f"{name!r}: rename it."
            )


def _is_missing(value):
    """Whether a value is NaN, None or pandas.NA."""
    return value is None or is_scalar_nan(value) or type(value).__name__ == "NAType"


def _gaps(missing):
    """NaN where cells are missing, else 0: what MissingIndicator reads."""
    return np.where(np.column_stack(missing), np.nan, 0.0)


def _as_array(rows):
    """Rows as an array: of floats if all cells are numbers, else of objects."""
    cells = np.array(rows, dtype=object)
    numbers = all(isinstance(cell, Number) for cell in cells.ravel())
    return cells.astype(np.float64) if numbers else cells
