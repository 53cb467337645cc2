"""How the project is proved: rivals, known truths, the paper's tables and figures, and benchmarks.

It is no part of the installed package and may use all of it. ``python -m lab`` lists what can be run.
"""
