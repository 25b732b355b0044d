"""The uncollapsed state: rows on shards, and atoms that are instantiated.

Shards hold the rows, the state their labels. What the shards have in common is small: numbers of
members, sums of statistics, the atoms' parameters. After a segment every shard reports the
labels of its rows with atoms 0 .. K - 1 as before, then those that were offered to all shards,
and then its own new ones; `gather` puts the reports together and drops atoms that have no row.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from .._native._packing import pack, part_of
from ..partition_priors import prior_from_arrays
from ._check import check_uncollapsed


class Uncollapsed:
    """Labels of all rows, and the atoms they share.

    Parameters
    ----------
    likelihood : Likelihood
        Its global parameters belong to the state.
    prior : PartitionPrior
    labels : list of int32 array of shape (n_rows of the shard,)
        0 .. K - 1.

    Attributes
    ----------
    members : int64 array of shape (n_shards, K)
        Rows of each atom on each shard.
    statistics : array of shape (K, ...)
        Sums over the rows of all shards.
    theta : array of shape (K, ...) or None
        Atoms; None if they have not been drawn since the last segment. With a conjugate likelihood
        they are drawn when they are needed.
    log_lik : float
        log p(x | partition, theta) in the likelihood's own units, for a likelihood that is not
        conjugate. It holds for the state after atoms, partition and the parameters of H are drawn.
    offered : array of shape (n_offered, ...) or None
        New atoms that the segment under way has in common: rows of two shards that take one of
        them are in the same cluster.
    """

    def __init__(self, likelihood, prior, labels):
        self.likelihood, self.prior, self.labels = likelihood, prior, labels
        self.members = self.statistics = self.theta = self.offered = None
        self.log_lik = 0.0

    @property
    def sizes(self):
        """Rows of each atom: int64 (K,)."""
        return self.members.sum(axis=0)

    @property
    def n_clusters(self):
        return self.members.shape[1]

    @property
    def n_rows(self):
        return sum(map(len, self.labels))

    def gather(self, reports):
        """Take over what the shards did.

        Parameters
        ----------
        reports : list of (labels, statistics, theta)
            One per shard: labels int32 (n,) with new atoms from K + n_offered on, statistics of
            the shard's rows (K + n_offered + n_new, ...), and theta (n_new, ...) of the new ones or
            None.
        """
        n_shared = 0 if self.members is None else self.n_clusters
        if self.offered is not None:
            n_shared += len(self.offered)
            if self.theta is not None:
                self.theta = np.concatenate([self.theta, self.offered])
            self.offered = None
        total, new, theta, labels = None, [], [], []
        n_new = 0
        for label, statistics, own in reports:
            if n_shared == 0:  # the first labels: one numbering for all shards
                labels.append(label)
                total = statistics if total is None else total + statistics
                continue
            label = np.where(label < n_shared, label, label + n_new).astype(np.int32)
            labels.append(label)
            shared = statistics[:n_shared]
            total = shared.copy() if total is None else total + shared
            new.append(statistics[n_shared:])
            n_new += len(new[-1])
            if own is not None:
                theta.append(own)
        statistics = np.concatenate([total, *new])
        if self.theta is not None and len(self.theta) + sum(map(len, theta)) == len(statistics):
            theta = np.concatenate([self.theta, *theta])
        else:
            theta = None
        self.replace(labels, statistics, theta)

    def replace(self, labels, statistics, theta):
        """Take over labels of all rows; atoms without a row are dropped.

        Parameters
        ----------
        labels : list of int32 array of shape (n_rows of the shard,)
            0 .. n_atoms - 1.
        statistics : array of shape (n_atoms, ...)
        theta : array of shape (n_atoms, ...) or None
        """
        n = len(statistics)
        members = np.array([np.bincount(label, minlength=n) for label in labels])
        used = members.sum(axis=0) > 0
        number = np.cumsum(used, dtype=np.int32) - 1
        self.labels = [number[label] for label in labels]
        self.members = np.ascontiguousarray(members[:, used])
        self.statistics = statistics[used]
        self.theta = None if theta is None else theta[used]

    def log_joint(self):
        """log p(partition) + log p(x | partition); if the likelihood is not conjugate,
        log p(partition) + log p(theta) + log p(x | partition, theta)."""
        if self.likelihood.conjugate:
            log_lik = float(self.likelihood.log_marginal(self.statistics).sum())
        else:
            log_lik = float(self.likelihood.log_prior(self.theta).sum()) + self.log_lik
        log_prior = self.prior.log_probability(self.sizes) + self.prior.log_weight
        return log_prior + log_lik + self.likelihood.log_jacobian(self.n_rows)

    def scalars(self):
        """What a trace records."""
        return {
            "n_components": self.n_clusters,
            "log_joint": self.log_joint(),
            **self.prior.scalars(),
        }

    def to_arrays(self):
        """Flat dict of arrays from which `from_arrays` makes an equal state."""
        arrays = {f"labels{p}": labels for p, labels in enumerate(self.labels)}
        arrays |= pack({"likelihood": self.likelihood.state()})
        arrays["members"], arrays["statistics"] = self.members, self.statistics
        arrays["log_lik"] = np.array(self.log_lik)
        arrays |= self.prior.to_arrays()
        if self.theta is not None:
            arrays["theta"] = self.theta
        return arrays

    @classmethod
    def from_arrays(cls, arrays, likelihood, n_rows):
        """The state whose to_arrays() gave `arrays`; `likelihood` gets its parameters back.

        n_rows : int array of shape (n_shards,)
            Rows of each shard. StateError for arrays that do not fit these.
        """
        check_uncollapsed(arrays, likelihood, n_rows)
        likelihood.set_state(part_of(arrays, "likelihood"))
        n_shards = len(arrays["members"])
        labels = [arrays[f"labels{p}"] for p in range(n_shards)]
        new = cls(likelihood, prior_from_arrays(arrays), labels)
        new.members, new.statistics = arrays["members"], arrays["statistics"]
        new.theta, new.log_lik = arrays.get("theta"), float(arrays["log_lik"])
        return new
