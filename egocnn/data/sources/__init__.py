"""anything -> Graphs: one reader per kind of source, one entrance."""
