"""R networks of one shape, their nodes padded to one size: layers that compute all of them at once."""
