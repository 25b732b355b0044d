"""The law of the components of all views of a draw, by enumeration.

    P(k_1, ..., k_V) = prod_v w_v(k_v) prod_links P_uv(k_u, k_v) / (w_u(k_u) w_v(k_v)),

where P_uv(k, l) = w_u(k) w_v(l) for a new component k or l. Of the others, with the shares w that
sum to 1 without a new one, it has these margins and is otherwise w_u(k) (n_kl + c w_v(l)) / (n_k +
c), times the probability that neither is new.
"""

import itertools

import numpy as np


def scaled(law, rows, columns, n_rounds=500):
    """A law of pairs, brought to these margins: by turns."""
    law = [list(row) for row in law]
    for _ in range(n_rounds):
        for j, want in enumerate(columns):
            total = sum(row[j] for row in law)
            for row in law:
                row[j] *= want / total
        for row, want in zip(law, rows):
            total = sum(row)
            row[:] = [x * want / total for x in row]
    return np.array(law)


def links_of(draw, weights):
    """The P_uv of a CrossCatDraw, by its shown views; `weights` of their components, a new one last
    (all above 0)."""
    shown = {draw.stored(v): v for v in range(draw.n_views)}
    out = {}
    for (u, v), c in zip(draw.arrays["link_views"].tolist(), draw.arrays["link_strengths"]):
        u, v = shown[u], shown[v]
        one, two = weights[u], weights[v]
        counts = np.zeros((len(one) - 1, len(two) - 1))
        for k, l in zip(draw.row_labels[u], draw.row_labels[v]):  # noqa: E741
            counts[k, l] += 1
        here, there = one[:-1] / one[:-1].sum(), two[:-1] / two[:-1].sum()
        law = [
            [w * (n + c * x) / (counts[k].sum() + c) for n, x in zip(counts[k], there)]
            for k, w in enumerate(here)
        ]
        out[u, v] = np.multiply.outer(one, two)
        out[u, v][:-1, :-1] = scaled(law, here, there) * one[:-1].sum() * two[:-1].sum()
    return out


def log_law(weights, links):
    """log P of every tuple of components: by tuple."""
    out = {}
    for at in itertools.product(*(range(len(w)) for w in weights)):
        total = sum(np.log(w[k]) for w, k in zip(weights, at))
        for (u, v), law in links.items():
            total += np.log(law[at[u], at[v]] / (weights[u][at[u]] * weights[v][at[v]]))
        out[at] = total
    return out
