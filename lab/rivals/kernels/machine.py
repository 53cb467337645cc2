"""A kernel and a support vector machine: graphs with classes -> a fitted system.

The kernel is fitted on the training part alone. The validation part chooses between the kernel's settings and the
penalties of the machine: the most accurate pair, and of several the one with the smaller hinge loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from sklearn.svm import SVC

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from egocnn.train.validation import check_targets

PENALTIES = tuple(10.0**power for power in range(-3, 4))
"""of the support vector machine, the values that the kernels' papers choose from"""

MOST_BYTES = 4 << 30  # that one kernel matrix may take; three of them stand in memory at a time

CACHE_MEGABYTES = 500

Setting = TypeVar("Setting")
Description = TypeVar("Description")


class Kernel(Protocol[Setting, Description]):
    """A similarity of graphs: each is described once, and descriptions are compared."""

    @property
    def settings(self) -> Sequence[Setting]:
        """to choose from, the simplest first"""
        ...

    def fit(self, graphs: Graphs) -> Iterator[Description]:
        """Learn what there is to learn from these graphs, and describe them under every setting in turn."""
        ...

    def describe(self, graphs: Graphs, setting: Setting) -> Description:
        """Other graphs, by what was learned."""
        ...

    def compare(self, one: Description, other: Description) -> Floats:
        """(G, H) normalised kernel values of G graphs and H others"""
        ...


class KernelMachine(Generic[Setting, Description]):
    """A kernel with a support vector machine: a :class:`~lab.rivals.rival.RivalModel`."""

    parameters: int | None = None

    def __init__(self, kernel: Kernel[Setting, Description], penalties: Sequence[float] = PENALTIES) -> None:
        self.kernel = kernel
        self.penalties = penalties

    def fit(self, graphs: Graphs, validation: Graphs) -> Self:
        if not graphs.is_classification:
            raise DataError("kernel machines tell classes apart; these graphs have none")
        check_targets(graphs)
        if len(validation) == 0:
            raise DataError("no graph is left to choose the kernel's settings by: the validation part is empty")
        check_memory(len(graphs))
        self.node_label_names, self.class_names = graphs.node_label_names, graphs.class_names
        target, wanted = graphs.target, self._named(validation).target
        assert target is not None
        if wanted is None:
            raise DataError("the validation graphs have no classes to choose the kernel's settings by")
        best = (-1.0, 0.0)
        for setting, learned in zip(self.kernel.settings, self.kernel.fit(graphs), strict=True):
            inner = self.kernel.compare(learned, learned)
            outer = self.kernel.compare(self.kernel.describe(self._named(validation), setting), learned)
            for penalty in self.penalties:
                machine = SVC(C=penalty, kernel="precomputed", cache_size=CACHE_MEGABYTES).fit(inner, target)
                judged = judge(machine, outer, wanted)
                if judged > best:
                    best, self.machine, self.setting, self.learned = judged, machine, setting, learned
        return self

    def predict(self, graphs: Graphs) -> Ints:
        if len(graphs) == 0:
            return np.zeros(0, np.int64)
        description = self.kernel.describe(self._named(graphs), self.setting)
        predicted: Ints = self.machine.predict(self.kernel.compare(description, self.learned))
        return predicted

    def _named(self, graphs: Graphs) -> Graphs:
        """Labels and classes counted as in training."""
        return graphs.with_names(nodes=self.node_label_names, classes=self.class_names)


def judge(machine: SVC, similarity: Floats, target: Ints) -> tuple[float, float]:
    """Accuracy, then the hinge loss with its sign changed: more is better."""
    accuracy = float(np.mean(machine.predict(similarity) == target))
    known = np.isin(target, machine.classes_)
    if not known.any():
        return accuracy, 0.0
    decision = machine.decision_function(similarity)[known]
    if decision.ndim == 1:
        decision = np.stack([-decision, decision], axis=1) / 2  # then true less false is the signed margin
    right = machine.classes_ == target[known, None]
    margin = decision[right] - np.where(right, -np.inf, decision).max(axis=1)
    return accuracy, -float(np.maximum(0, 1 - margin).mean())


def check_memory(n_graphs: int) -> None:
    """Refuse collections whose kernel matrix does not fit, before any work is done."""
    size = 8 * n_graphs**2
    if size > MOST_BYTES:
        raise DataError(
            f"a kernel matrix of {n_graphs} graphs takes {size / 2**30:.0f} GiB; "
            f"at most {MOST_BYTES / 2**30:.0f} GiB are allowed"
        )
