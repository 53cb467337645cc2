"""Commands about a data set, with no model: what is in it, a store of it, its degrees."""
