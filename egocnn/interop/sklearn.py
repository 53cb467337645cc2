"""Scikit-learn style models: EgoCNNClassifier and EgoCNNRegressor, graphs or molecules in, classes or values out."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from egocnn.config import check_value
from egocnn.data.graphs import Graphs
from egocnn.data.sources.text import listed, short
from egocnn.errors import DataError, rule
from egocnn.interop import targets
from egocnn.interop.estimator import Estimator
from egocnn.model import Model
from egocnn.show.report.folder import PAGE, check_folder, write_explanations
from egocnn.train.metrics import known_truth, test_scores


class EgoCNNClassifier(ClassifierMixin, Estimator):
    """Tell classes of graphs apart.

    ``fit(graphs)`` takes the classes from the graphs; ``fit(graphs, y)`` takes y instead. Either trains on all graphs
    that it is given, whatever split they carry; ``graphs.select("train")`` gives it a part of them. A share of them,
    drawn by the seed in whole groups, chooses the best epoch. Works with scikit-learn's ``clone``,
    ``cross_val_score`` and ``GridSearchCV``.

    Example:
        >>> import egocnn
        >>> smiles = ["CC", "CCC", "CCCC", "CCO", "CCCO", "CCCCO"]
        >>> toxic = [False] * 3 + [True] * 3
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2)
        >>> model.fit(smiles, toxic).classes_, model.predict("CCCCCO").dtype
        (array([False,  True]), dtype('bool'))

        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-6,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=2, epochs=20).fit(graphs)
        >>> model.classes_
        array(['alkane', 'alcohol'], dtype='<U7')
        >>> model.predict_proba(graphs[:3]).shape
        (3, 2)
        >>> [structure] = model.explain(graphs[:1])  # which part made it say so
        >>> len(structure.node_importance) == structure.graph.n_nodes
        True"""

    _kind = "class"

    @property
    def classes_(self) -> Any:
        """The classes in the order of the probabilities: as ``y`` or the data had them, numbers say, else by name. Of
        several targets these by the target's name."""
        several = (name for name in self._fitted.targets if self._fitted.of_target(name).class_names)
        return {name: self._classes_of(name) for name in several} if self._fitted.targets else self._classes_of()

    def _with_targets(self, graphs: Graphs, y: NDArray[Any] | None) -> tuple[Graphs, dict[str, Any]]:
        if y is None and any(names for _, names in graphs.targets):
            return graphs, {}
        rule(y is not None or graphs.class_names, "these graphs have no classes; pass y, or use EgoCNNRegressor")
        if y is None:
            return graphs, {"classes": list(graphs.class_names)}
        codes, about = targets.encode_classes(y)
        return graphs.replace(target=codes, class_names=tuple(map(str, about["classes"])), targets=()), about

    def predict_proba(self, graphs: Any) -> Any:
        """Calibrated probabilities.

        Arguments:
            graphs: Anything that :func:`egocnn.read` takes.

        Returns:
            (G, C) numbers, the columns as in ``classes_``. Of several targets, these, or values, by the target's name.
        """
        return self._of_each_target(graphs, proba=True)

    def score(self, graphs: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy.

        Arguments:
            graphs: Anything that :func:`egocnn.read` takes.
            y: The true classes, or their column as ``fit`` takes it; else the graphs' own, and graphs whose class is
                not known do not count.
            sample_weight: How much each graph counts.

        Returns:
            The share of graphs that are predicted rightly; of several targets, ``y`` a DataFrame, the mean."""
        y = self._given(y)
        if self._fitted.targets:
            return self._mean_score(graphs, y, "accuracy", sample_weight)
        graphs = self._read(graphs)
        weights = targets.checked_weights(sample_weight, len(graphs))
        if y is not None:
            truth, known = targets.checked_targets(y, len(graphs)), self.classes_
            names = f"y[0] is {short(truth.tolist()[0])} and the model's classes are {listed(map(str, known))}"
            rule(isinstance(truth[0], str) == isinstance(known[0], str), f"{names}; both must be texts or both numbers")
            return float(np.average(self.predict(graphs) == truth, weights=weights))
        if graphs.target is None or not graphs.is_classification or (graphs.target < 0).all():
            raise DataError("these graphs have no classes to compare with; pass y")
        if not set(graphs.class_names) & set(self._fitted.class_names):
            raise DataError(f"these graphs' classes ({', '.join(graphs.class_names)}) are not the model's; pass y")
        known, truth = known_truth(graphs, self._fitted.class_names)
        right = self.predict_proba(graphs[known]).argmax(axis=1) == truth
        return float(np.average(right, weights=None if weights is None else weights[known]))


class EgoCNNRegressor(RegressorMixin, Estimator):
    """Predict a number for a graph, and explain what raised and what lowered it.

    Targets are standardised on the training part; predictions are in the unit of the target.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-6,per_size=2")
        >>> model = egocnn.EgoCNNRegressor(width=8, depth=2, epochs=5, readout="sum")
        >>> model.fit(graphs, y=graphs.node_counts).predict(graphs[:3]).shape
        (3,)"""

    _kind = "value"

    def _with_targets(self, graphs: Graphs, y: NDArray[Any] | None) -> tuple[Graphs, dict[str, Any]]:
        if y is not None:
            graphs = graphs.replace(target=targets.encode_values(y), class_names=(), targets=())
        elif graphs.target is None or graphs.class_names or any(names for _, names in graphs.targets):
            raise DataError("these graphs have no values to predict; pass y, or use EgoCNNClassifier")
        return graphs, {}

    def score(self, graphs: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R², the share of the variance that is predicted.

        Arguments:
            graphs: Anything that :func:`egocnn.read` takes.
            y: The true values, or their column as ``fit`` takes it; else the graphs' own, and graphs whose value is not
                known do not count.
            sample_weight: How much each graph counts.

        Returns:
            At most 1; 0 is what the mean of all values scores. Of several targets, ``y`` a DataFrame, their mean."""
        y = self._given(y)
        if self._fitted.targets:
            return self._mean_score(graphs, y, "r2", sample_weight)
        graphs = self._read(graphs, scored=y is None)
        if y is not None:
            values = targets.encode_values(targets.checked_targets(y, len(graphs)))
            weights = targets.checked_weights(sample_weight, len(graphs))
            return float(RegressorMixin.score(self, graphs, values, weights))
        if graphs.target is None or graphs.is_classification or np.isnan(graphs.target).all():
            raise DataError("these graphs have no values to compare with; pass y")
        if sample_weight is not None:
            return self.score(graphs, graphs.target, sample_weight)
        return test_scores(self._fitted, graphs, device=self.device)["r2"]


def load(folder: str | Path, *, embed: Any = None, embed_width: int | None = None) -> Any:
    """Read the classifier or regressor that was saved in a run folder; nothing in it is executed.

    Arguments:
        folder: What ``model.save`` or ``egocnn train`` wrote.
        embed: The module in place of the node embedding, where the model was trained with one.
        embed_width: The width that this module returns.

    Returns:
        A fitted :class:`EgoCNNClassifier` or :class:`EgoCNNRegressor`.

    Raises:
        RunError: the folder is incomplete or damaged.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2).fit(graphs)
        >>> model.save("runs/alcohols")
        >>> egocnn.load("runs/alcohols").predict(graphs).shape
        (10,)"""
    loaded = Model.load(folder, embed=embed, embed_width=embed_width)
    kind = EgoCNNClassifier if loaded.predicts_classes else EgoCNNRegressor
    return kind._of(loaded, Path(folder), embed=embed, embed_width=embed_width)


def write_report(model: Any, data: Any, folder: str | Path, *, figures: int = 24, **settings: Any) -> Path:
    """Explain every prediction and write the report that ``egocnn explain`` writes.

    Arguments:
        model: A fitted :class:`EgoCNNClassifier` or :class:`EgoCNNRegressor`.
        data: Anything that :func:`egocnn.read` takes.
        folder: For ``index.html``, ``structures.jsonl`` and ``figures/``; an earlier report there is replaced.
        figures: Pictures to write to ``figures/``.
        settings: Those of ``model.explain``, ``technique="occlusion"`` say.

    Returns:
        Where the page is.

    Example:
        >>> import egocnn
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2)
        >>> model = model.fit(["CC", "CCC", "CCO", "CCCO"], [False, False, True, True])
        >>> egocnn.write_report(model, ["CCCCO"], "report").name
        'index.html'"""
    rule(isinstance(model, Estimator), f"a fitted estimator is needed, not {type(model).__name__}")
    check_value("figures", figures)
    check_folder(place := Path(folder))
    about: dict[str, Any] = {"model": type(model).__name__, "data": str(data) if isinstance(data, (str, Path)) else ""}
    asked = settings.get("target")
    about |= {"class_names": model._fitted.of_target(asked).class_names, "target": model._fitted.target_name(asked)}
    found = [structure.named() for structure in model.explain(data, **settings)]
    write_explanations(found, place, figures=figures, **about)
    return place / PAGE
