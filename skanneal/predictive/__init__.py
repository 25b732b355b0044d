"""Draws, and what is asked of them: densities, fills, samples, information, similarity."""
