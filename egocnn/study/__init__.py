"""Graphs + settings -> how well a model does on graphs never seen: cross-validation, sweeps, statistics."""
