"""Graphs + settings -> how well a model does on graphs never seen; what graphs are like, and their degrees."""
