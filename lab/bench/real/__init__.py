"""Explanations on real data, where no truth is known: what can be said of them all the same."""
