"""How the project is proved: rivals, known truths, the paper's tables and figures, and benchmarks."""
