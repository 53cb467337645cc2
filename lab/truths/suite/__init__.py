"""Truths that cannot be tuned to: a catalogue of tasks whose critical structures or contributions are known.

::

    python -m lab truths make -o FOLDER          # writes every task; needs RDKit and EGOCNN_DATA
    python -m lab truths score --tasks FOLDER    # trains, explains and scores; needs neither

    from lab.truths.suite import load, task_names
    graphs, truths = load("FOLDER", "two-amides")    # one Truth per graph, in the same order
    test = [g for g in range(len(graphs)) if graphs.part[g] == 2 and not truths[g].larger]

``graphs`` are egocnn's own :class:`~egocnn.data.graphs.Graphs` with the parts train, validation and test, the labels
being those of egocnn's SMILES reader. A truth has ``alternatives`` (each an array of nodes; finding one is enough),
``edges`` (a mark per edge of the graph, or None), ``values`` (a number per node, for regressions), ``nothing``
(nothing in the graph speaks for its class or against it) and ``larger`` (a test graph about three times the size of
those trained on). :mod:`~lab.truths.suite.files` tells what stands in the files, ``tasks.json`` beside them what each
task is.
"""

from lab.truths.suite.files import load
from lab.truths.suite.index import TaskInfo, read_index, task_names

__all__ = ["TaskInfo", "load", "read_index", "task_names"]
