"""Draws, and the queries that they answer: densities, fills, samples, information, similarity."""
