"""Graphs + settings -> how well a model does on graphs never seen: cross-validation, sweeps, statistics.

Also how far the degrees of graphs follow a power law.
"""
