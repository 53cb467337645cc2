"""Tasks on real molecules: SMILES of the data at hand + rules over functional groups -> examples of known truth."""
