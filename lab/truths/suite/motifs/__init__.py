"""Tasks on generated graphs: shapes attached to bases by a seed -> examples with known critical nodes and edges."""
