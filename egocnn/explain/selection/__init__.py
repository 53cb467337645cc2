"""Choose the critical nodes of every graph: importances -> one yes or no per node."""
