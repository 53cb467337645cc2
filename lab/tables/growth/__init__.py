"""Table 1 of the paper: what it claims of every system -> beside it, how time grows with layers and nodes."""
