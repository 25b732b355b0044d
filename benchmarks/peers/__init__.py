"""Fits beside those of other packages, on the same rows and cores."""
