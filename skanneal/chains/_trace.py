"""The trace of a run: named scalars, one value of each per record."""

# SPDX-License-Identifier: BSD-3-Clause

import math

import numpy as np

from .._native._state_arrays import StateError


class Trace(dict):
    """The values recorded so far: name -> list of floats."""

    def record(self, scalars):
        """Append one value of every scalar.

        Parameters
        ----------
        scalars : dict of str to number
            Those that another call has and this one has not are NaN here, and the other way round.
        """
        n_records = max(map(len, self.values()), default=0)
        for name in dict.fromkeys([*self, *scalars]):
            if name not in self:
                self[name] = [math.nan] * n_records
            self[name].append(float(scalars.get(name, math.nan)))

    def to_arrays(self):
        """Return a dict of float arrays of shape (n_records,)."""
        return {name: np.array(values) for name, values in self.items()}

    @classmethod
    def from_arrays(cls, arrays):
        """Return the trace whose `to_arrays` gave `arrays`; StateError for others."""
        trace, length = cls(), None
        for name, values in arrays.items():
            if (
                np.ndim(values) != 1
                or values.dtype.kind != "f"
                or len(values) != (len(values) if length is None else length)
            ):
                raise StateError(name, "does not hold a number for each record")
            trace[name], length = values.tolist(), len(values)
        return trace


def side_by_side(traces):
    """Put the traces of several chains into one dict of arrays.

    Parameters
    ----------
    traces : list of dict
        Float arrays of shape (n_records,), the same names for every chain.

    Returns
    -------
    trace : dict of str to ndarray of shape (n_chains, n_records)
        Shorter chains are padded with NaN.
    """
    longest = max(len(trace["sweeps"]) for trace in traces)
    return {
        name: np.array([np.r_[t[name], np.full(longest - len(t[name]), np.nan)] for t in traces])
        for name in traces[0]
    }
