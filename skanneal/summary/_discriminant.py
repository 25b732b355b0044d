"""Rows of numbers on the straight line that tells two components best apart.

The line is that of Fisher's linear discriminant between the two components, to which the rows
belong in shares r_i and 1 - r_i, so that it does not depend on where a border is:

    w = W^-1 (m_a - m_b),    y_i = w' (x_i - (m_a + m_b) / 2),

with m_a, m_b their means and W the sum of their scatters. On this line two normal components have
two normal laws, whatever their widths. Log densities do not have them: where a narrow component
lies beside a wide one, they bend the line around the narrow one.

Of many columns the rows have much to choose from, and a row would draw the means towards itself. So
each row is placed on the line that the other rows choose. Without row i, of which u = x_i - m_a and
v = x_i - m_b,

    m_a -> m_a - r u / (n_a - r),    W -> W - r n_a / (n_a - r) u u' - (the same of v),

so that its place follows from W^-1 by the identity of Woodbury.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

MOST_WORK = 10**8  # rows times the square of the number of columns: more of them are not asked
_RIDGE = 1e-9  # added to correlations, so that columns may depend on each other
_LEAST = 1e-9  # of what is divided by: a row that its line depends on altogether has no place


def discriminant_places(numbers, shares):
    """Return the places of rows on the line between two components that the other rows choose.

    Parameters
    ----------
    numbers : ndarray of float of shape (n_rows, n_columns)
        Without gaps, in any units.
    shares : ndarray of float of shape (n_rows,)
        The probability that a row is in the first component, of the two.

    Returns
    -------
    places : ndarray of shape (n_rows,) or None
        None where there are no more rows than two for each column, hardly a row of a component, or
        too much work.
    """
    n_rows, n_columns = numbers.shape
    others = 1.0 - shares
    n_first, n_second = shares.sum(), others.sum()
    if n_rows <= 2 * n_columns or min(n_first, n_second) < 2.0:
        return None
    if n_rows * n_columns**2 > MOST_WORK:
        return None
    spread = numbers.std(axis=0)
    rows = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    first, second = shares @ rows / n_first, others @ rows / n_second
    of_first, of_second = rows - first, rows - second
    within = (of_first.T * shares) @ of_first + (of_second.T * others) @ of_second
    within += _RIDGE * n_rows * np.eye(n_columns)
    factor, failed = dpotrf(within, lower=1)
    if failed:
        return None
    to_first, to_second = (dpotrs(factor, of.T, lower=1)[0].T for of in (of_first, of_second))
    uu = (to_first * of_first).sum(axis=1)
    vv = (to_second * of_second).sum(axis=1)
    uv = (to_first * of_second).sum(axis=1)
    # without row i: how far it moves the means, and how much less scatter there is
    move_a, move_b = shares / (n_first - shares), others / (n_second - others)
    less_a, less_b = move_a * n_first, move_b * n_second
    apart = first - second
    along_u = to_first @ apart - move_a * uu + move_b * uv
    along_v = to_second @ apart - move_a * uv + move_b * vv
    # x less the middle of the means is a sum of u and v in these parts
    part_u, part_v = (1.0 + move_a) / 2, (1.0 + move_b) / 2
    place_u, place_v = part_u * uu + part_v * uv, part_u * uv + part_v * vv
    places = part_u * along_u + part_v * along_v
    # W^-1 + W^-1 C (D - C' W^-1 C)^-1 C' W^-1 with C = (u, v), D^-1 the weights; times D throughout
    a, b, c = 1.0 - less_a * uu, 1.0 - less_b * vv, less_a * less_b * uv**2
    determinant = a * b - c
    if determinant.min() < _LEAST:
        return None
    crossed = less_a * less_b * uv * (place_u * along_v + place_v * along_u)
    straight = less_a * b * place_u * along_u + less_b * a * place_v * along_v
    return places + (straight + crossed) / determinant
