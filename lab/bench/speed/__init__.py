"""Speed beside named peers, one module a benchmark: how it is run -> cases with times, memory and ratios."""
