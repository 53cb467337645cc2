"""A page to try a trained model: SMILES or a file of graphs in a browser -> prediction, critical structure, report."""
