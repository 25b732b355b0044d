"""Whether positive numbers are better described by their logarithms: the choice between a normal
and a log-normal distribution.

Both have two parameters, fitted here by the moments of the ordinary values (_scaling.py), of the
numbers and of their logarithms. Under one measure, the numbers' own, the difference of the log
densities at a number x, with standardised values z of x and u of log x, is

    d(x) = (z^2 - u^2) / 2 + log(s_x / s_log) - log x.

The logarithm is preferred if the sum of the d is beyond MARGIN of its standard errors (Vuong 1989,
"Likelihood ratio tests for model selection and non-nested hypotheses", Econometrica 57), so that
neither a few numbers nor one wild one decides. Scaling the column changes nothing.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families._scaling import offset_and_scale

MARGIN = 2.0  # standard errors


def prefers_logarithm(values):
    """Whether a log-normal distribution describes the numbers better than a normal one.

    Parameters
    ----------
    values : float64 array of shape (n,)
        Without NaN.
    """
    if len(values) < 2 or not values.min() > 0 or values.min() == values.max():
        return False
    logs = np.log(values)
    (centre, scale), (log_centre, log_scale) = map(offset_and_scale, (values, logs))
    squares = [((values - centre) / scale) ** 2, ((logs - log_centre) / log_scale) ** 2]
    gains = 0.5 * (squares[0] - squares[1]) + np.log(scale / log_scale) - logs
    return bool(gains.sum() > MARGIN * np.sqrt(len(gains)) * gains.std())
