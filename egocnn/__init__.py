"""egocnn: graph models that show which part of a graph made them say so."""
