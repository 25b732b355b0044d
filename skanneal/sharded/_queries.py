"""Queries of a mixture whose features may be instantiated."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ..likelihoods import LIKELIHOODS, Gaussian
from ..predictive._queries import QueryMixin
from ._data import refuse_gaps
from ._draws import FeaturePredictor


def _integrates(estimator):
    """Whether features can be integrated out, of what was fitted or is to be."""
    if hasattr(estimator, "likelihood_"):
        return estimator.likelihood_.conjugate
    return is_conjugate(estimator.likelihood)


def is_conjugate(likelihood):
    if isinstance(likelihood, str):
        likelihood = LIKELIHOODS.get(likelihood, Gaussian)  # "auto" takes one that is conjugate
    return likelihood.conjugate


class FeatureQueryMixin(QueryMixin):
    """`QueryMixin`, which sees features integrated out, where that can be; else from the features
    of the draws, and without the questions that need the integral."""

    def _predictor(self, draws=None):
        check_is_fitted(self)
        if self.likelihood_.conjugate:
            return super()._predictor(draws)
        draws = [draw for chain in self.draws_ for draw in chain] if draws is None else draws
        return FeaturePredictor(draws)

    def _encoded(self, X):
        columns = super()._encoded(X)
        refuse_gaps(self._encoder, columns)
        return columns

    def _query(self, predictor, X):
        if self.likelihood_.conjugate:
            return super()._query(predictor, X)
        if self._encoder is not None:
            return self.likelihood_.rows(self._encoded(X))
        return self.likelihood_.encode(validate_data(self, X, dtype=np.float64, reset=False))

    def score_samples(self, X, given=None):
        """Log predictive density of each row, or of some of its cells given the others.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_columns)
            Without missing cells.
        given : columns or None, default=None
            Names, positions or a mask of the columns whose cells are known: the density is then
            that of the other columns' cells given these. Conjugate likelihoods only.

        Returns
        -------
        log_density : ndarray of shape (n_rows,)
            In nats and the units of X; densities are averaged over chains and draws, the term of a
            new cluster included: exact, or without a conjugate prior an estimate from 256 features
            of the base measure and, if the likelihood has a proposal, 128 proposed for the row,
            which are the same whenever the row is asked about.
        """
        predictor = self._predictor()
        if self.likelihood_.conjugate:
            return super().score_samples(X, given)
        if given is not None:
            raise ValueError("given needs a conjugate likelihood")
        return predictor.log_density(self._query(predictor, X))

    # rows without missing cells, but for `impute`
    sample = available_if(_integrates)(QueryMixin.sample)
    surprisal = available_if(_integrates)(QueryMixin.surprisal)
    impute = available_if(_integrates)(QueryMixin.impute)
