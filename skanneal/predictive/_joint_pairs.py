"""Densities of single cells, and of pairs, of a family of whole rows that views divide.

In every component a row is Student's t of some centre, squared scale and degrees of freedom nu; any
of its cells is so with the part of the scale that belongs to them. With q the squared distance,

    p(x)    = Gamma((nu + 1)/2) / Gamma(nu/2) (pi nu s)^(-1/2) (1 + q/nu)^(-(nu + 1)/2)
    p(x, y) = 1 / (2 pi) |S|^(-1/2) (1 + q/nu)^(-(nu + 2)/2).
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import gammaln


class JointPairs:
    """Some columns of a block.

    Parameters
    ----------
    block : FamilyBlock
        Of a family with a `division`.
    slots : int array of shape (n_components,)
    columns : list of int
        Those of the block, by their position in the table.
    """

    def __init__(self, block, slots, columns):
        self.block, self.slots, self.columns = block, slots, columns
        self.at = np.searchsorted(block.columns, columns)
        centres, scales, self.degrees = block.division.laws(block, slots)
        self.centres = centres[:, self.at].T
        self.scales = scales[:, self.at][:, :, self.at].transpose(1, 2, 0)

    def sample(self, which, bit_generator):
        """Cells of the columns in these of the slots: (n, n_columns), in cell units."""
        return self.block.sample_rows(self.slots[which], bit_generator)[:, self.at]

    def alone(self, i, cells):
        """Log density of the i-th column's cells in each component: (n, n_components)."""
        nu, square = self.degrees, self.scales[i, i]
        q = (cells[:, None] - self.centres[i]) ** 2 / square
        constant = gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu * square)
        return constant - 0.5 * (nu + 1) * np.log1p(q / nu)

    def together(self, i, cells):
        """Log density of the i-th column's cells with each of the others': (n, n_columns - 1,
        n_components), cells being (n, n_columns)."""
        nu, others = self.degrees, np.delete(np.arange(len(self.columns)), i)
        deviations = cells[:, :, None] - self.centres
        one, two = deviations[:, [i]], deviations[:, others]
        a, b, c = self.scales[i, i], self.scales[i, others], self.scales[others, others]
        determinant = a * c - b * b
        q = (c * one * one - 2.0 * b * one * two + a * two * two) / determinant
        constant = -np.log(2.0 * np.pi) - 0.5 * np.log(determinant)
        return constant - 0.5 * (nu + 2) * np.log1p(np.maximum(q, 0.0) / nu)


def joint_pairs(view, columns):
    """The JointPairs of a view's blocks of whole rows, of these columns: a list of one or none."""
    out = []
    for block in view.mixture.blocks:
        own = [int(j) for j in block.columns if int(j) in columns]
        if block.joint and own:
            out.append(JointPairs(block, view.slots, own))
    return out
