"""Commands that look across all graphs of a data set: what recurs in them, and what differs between two."""
