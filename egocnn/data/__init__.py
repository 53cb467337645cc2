"""Anything that holds graphs -> Graphs: flat arrays in memory or on disk, checked, split and described."""
