"""
Topics of documents, from a sparse table of words
=================================================

A document is a row of counts: how often each word of the vocabulary occurs in it, mostly never. The
family ``multinomial`` reads such rows as they come from a vectorizer, as a sparse matrix, and never
makes them dense. The number of topics is not given.
"""

# %%
# The documents
# -------------
# scikit-learn brings no text along, so 400 short notices are made up here: words of one of six
# topics among words that any text has. Some belong to two topics: a *court* sits or is played on,
# a *bank* lends or lies along a river. Some topics are more frequent than others.

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

common = "the a of and to in for was at from day new people time year first last good old way"
topics = {
    "kitchen": "butter flour oven sugar dough bake salt egg cream cup season stir dish bowl",
    "sea": "harbour sail wave anchor tide wind deck coast crew storm board salt cabin rope",
    "law": "court judge trial witness lawyer verdict appeal claim case bench evidence board",
    "money": "bank loan share price market rate trade fund board profit tax interest bond case",
    "tennis": "court serve match racket set net season rate final umpire player wind bench",
    "river": "bank bridge flood trout mill wave stream valley ferry reed mud bend rope",
}
rng = np.random.default_rng(4)
frequency = {name: rng.dirichlet(np.full(len(w.split()), 2.0)) for name, w in topics.items()}
truth = rng.choice(list(topics), size=400, p=[0.24, 0.2, 0.18, 0.16, 0.12, 0.1])
notices = []
for topic in truth:
    length = rng.integers(15, 50)
    own = rng.choice(topics[topic].split(), size=length, p=frequency[topic])
    any_text = rng.choice(common.split(), size=length)
    notices.append(" ".join(np.where(rng.random(length) < 0.4, own, any_text)))
print(notices[0])

vectorizer = CountVectorizer(token_pattern=r"\w+")
X = vectorizer.fit_transform(notices)
print("{} notices, {} words;".format(*X.shape), f"{X.nnz / np.prod(X.shape):.0%} of X is above 0")

# %%
# The fit
# -------

from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture

model = AnnealedDPMixture(families="multinomial", random_state=0).fit(X)
print("clusters:", model.n_clusters_)
print(f"adjusted Rand index with the topics: {adjusted_rand_score(truth, model.labels_):.2f}")

# %%
# What the clusters are about
# ---------------------------
# Each panel has the words that set a cluster apart the most, with their shares of its words: those
# that add most to the divergence from all notices, whose shares are the grey bars.

import matplotlib.pyplot as plt

words = vectorizer.get_feature_names_out()
overall = np.ravel(X.sum(axis=0)) / X.sum()
largest = np.argsort(-np.bincount(model.labels_), kind="stable")[:6]
figure, axes = plt.subplots(2, 3, figsize=(9.5, 5.6), layout="constrained", sharex=True)
for cluster, ax, color in zip(largest, axes.flat, plt.colormaps["Dark2"].colors):
    members = model.labels_ == cluster
    share = np.ravel(X[members].sum(axis=0)) / X[members].sum()
    apart = share * np.log(np.maximum(share, 1e-12) / overall)
    top = np.argsort(-apart)[:8]
    top = top[np.argsort(-share[top])]
    ax.barh(words[top], share[top], color=color)
    ax.barh(words[top], overall[top], height=0.25, color="0.75")
    ax.invert_yaxis()
    ax.set_title(f"{members.sum()} notices", color=color, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=0)
    ax.xaxis.set_major_formatter("{x:.0%}")
figure.supxlabel("share of the cluster's words (grey: of all words)", fontsize="medium")
plt.show()

# %%
# New documents
# -------------
# ``predict_proba`` gives the probabilities of the clusters, and ``new_cluster_proba`` says whether
# a notice is about something else. Words that no notice had are not in the table. Words that do
# not go together in any cluster make a new one likely.

queries = [
    "the bank of the river",
    "the bank and the loan",
    "the judge in court",
    "reed oven judge",
]
rows = vectorizer.transform(queries)
for query, p, new in zip(queries, model.predict_proba(rows), model.new_cluster_proba(rows)):
    members = truth[model.labels_ == p.argmax()]
    name = max(set(members), key=list(members).count)
    print(f"{query:24s} {name:8s} {p.max():.2f}   new: {new:.3f}")
