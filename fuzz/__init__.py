"""Hostile input: whatever reads a file of somebody else's is fed broken ones, and watched while it reads.

``python -m fuzz --seconds 3600 -o results/fuzzing.json`` shares the seconds among all targets; ``python -m fuzz csv``
takes one of them. What must never happen is written down in :mod:`fuzz.guard`, how files are broken in
:mod:`fuzz.mutations`, and what is read in :mod:`fuzz.targets`.
"""
