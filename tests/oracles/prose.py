"""Sentences of the papers' pages, each with a function that tells from the lines if it is so."""

import functools

from oracles.places import ROOT
from papers.cells import lines_of


class Sentences:
    """A file's sentences: ``says(page, family, sentence)`` marks the function that decides one."""

    def __init__(self):
        self.said = []

    def __call__(self, page, family, sentence):
        def mark(function):
            self.said.append((page, family, sentence, function))
            return function

        return mark

    def names(self):
        """Of the functions."""
        return [function.__name__ for *_, function in self.said]


@functools.cache
def records_of(family):
    """The family's lines, read once."""
    return lines_of(family).records


@functools.cache
def words_of(page):
    """A page's text, however its lines are broken."""
    return " ".join((ROOT / "doc" / f"{page}.md").read_text(encoding="utf-8").split())


def assert_said_and_so(page, family, sentence, is_so):
    """The page has the sentence, and the lines bear it out."""
    assert sentence in words_of(page)
    assert is_so(records_of(family))


def verdicts(claims):
    """Claim to its verdict."""
    return {text: verdict for text, _, verdict in claims}
