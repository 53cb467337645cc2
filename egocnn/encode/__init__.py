"""Graphs -> batches of tensors: ranked neighbours, patches and scales, fitted on training graphs alone."""
