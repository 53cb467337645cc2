"""MoleculeNet sets and their splits -> the scores, CPU seconds and memory of ours, chemprop and a random forest."""
