"""Scikit-learn style models: EgoCNNClassifier and EgoCNNRegressor, Graphs in, classes or values out."""

from __future__ import annotations

import inspect
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError

from egocnn.config import ExplainConfig, ModelConfig, TrainConfig
from egocnn.critical import AttentionHead, explain, fit_attention, load_attention, save_attention
from egocnn.errors import DataError
from egocnn.files import write_json, write_text
from egocnn.graphs import Graphs
from egocnn.learning import learn
from egocnn.predictor import Predictor
from egocnn.progress import training_report
from egocnn.reading import read
from egocnn.runs import history_csv, measure, test_scores, versions
from egocnn.structure import CriticalStructure
from egocnn.training import History

SETTINGS: dict[str, Any] = {f.name: f.default for config in (ModelConfig, TrainConfig) for f in fields(config)}
"""Every parameter of the estimators with its default: the fields of both records, so there is no second list."""

EXTRAS: dict[str, Any] = {"embed": None, "embed_width": None, "verbose": False}
"""A module in place of the node embedding, the width it returns, and whether to show progress."""


class _EgoCNN(BaseEstimator):
    """What classifier and regressor share: settings, fitting, saving."""

    predictor_: Predictor
    history_: History
    attention_: AttentionHead

    def __init__(self, **settings: Any) -> None:
        unknown = settings.keys() - (SETTINGS | EXTRAS).keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {sorted(unknown)[0]!r}")
        for name, value in (SETTINGS | EXTRAS | settings).items():
            setattr(self, name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every setting by name, as scikit-learn wants them."""
        return dict(BaseEstimator.get_params(self, deep))

    def set_params(self, **settings: Any) -> Self:
        BaseEstimator.set_params(self, **settings)
        return self

    def _configs(self) -> tuple[ModelConfig, TrainConfig]:
        settings = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        model, train = ({f.name: settings[f.name] for f in fields(config)} for config in (ModelConfig, TrainConfig))
        return ModelConfig(**model), TrainConfig(**train)

    def _learn(self, graphs: Graphs) -> Self:
        model, train = self._configs()
        with training_report(train, visible=self.get_params()["verbose"]) as report:
            predictor, self.history_ = learn(
                graphs,
                model,
                train,
                embed=self.get_params(deep=False)["embed"],
                embed_width=self.get_params()["embed_width"],
                report=report,
            )
        about = {**predictor.about, "train": asdict(train), "versions": versions()}
        self.predictor_ = replace(predictor, about=about)
        return self

    @property
    def _fitted(self) -> Predictor:
        if not hasattr(self, "predictor_"):
            raise NotFittedError(f"this {type(self).__name__} has not been fitted; call fit first")
        return self.predictor_

    def explain(
        self, graphs: Any, *, classes: Any = None, fidelity: bool = True, **settings: Any
    ) -> list[CriticalStructure]:
        """The critical structure behind the prediction for every graph.

        ``classes``: the class to explain, one for all graphs or one for each (default: the predicted ones).
        ``settings``: the fields of :class:`egocnn.config.ExplainConfig`. The paper's technique first trains its
        attention layer on these graphs, unless :meth:`fit_attention` has trained it already.
        """
        graphs, config = read(graphs), ExplainConfig(**settings)
        if config.technique == "paper" and not hasattr(self, "attention_"):
            self.fit_attention(graphs)
        asked = None if classes is None else _names(classes)
        return explain(
            self._fitted,
            graphs,
            config,
            classes=asked,
            attention=getattr(self, "attention_", None),
            fidelity=fidelity,
            device=self.get_params()["device"],
        )

    def fit_attention(self, graphs: Any, **settings: Any) -> Self:
        """Train the paper's attention layer and linear head on the frozen ego layers; see :mod:`egocnn.critical`."""
        device = self.get_params()["device"]
        self.attention_ = fit_attention(self._fitted, read(graphs), **{"device": device, **settings})
        return self

    def save(self, folder: str | Path) -> None:
        """Write a run folder that :func:`egocnn.load` and ``egocnn predict`` read."""
        self._fitted.save(folder)
        if hasattr(self, "attention_"):
            save_attention(self.attention_, Path(folder))
        if hasattr(self, "history_"):
            write_text(Path(folder) / "history.csv", history_csv(self.history_))
            nothing = Graphs.from_edges(node_counts=[], edges=np.zeros((0, 2), np.int64))
            metrics = measure(self._fitted, nothing, self.history_, device="cpu")
            del metrics["graphs"]
            write_json(Path(folder) / "metrics.json", metrics)

    @classmethod
    def load(cls, folder: str | Path, *, embed: Any = None, embed_width: int | None = None) -> Self:
        """Read a run folder; nothing in it is executed."""
        predictor = Predictor.load(folder, embed=embed, embed_width=embed_width)
        trained = {name: value for name, value in predictor.about.get("train", {}).items() if name != "device"}
        model = cls(**asdict(predictor.config), **trained, embed=embed, embed_width=embed_width)
        model.predictor_ = predictor
        attention = load_attention(Path(folder), predictor)
        if attention is not None:
            model.attention_ = attention
        return model


# scikit-learn reads the parameters off the signature: give it the fields, though __init__ takes them as they come
_EgoCNN.__init__.__dict__["__signature__"] = inspect.Signature(
    [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    + [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in (SETTINGS | EXTRAS).items()
    ]
)


class EgoCNNClassifier(ClassifierMixin, _EgoCNN):
    """Tell classes of graphs apart.

    ``fit(graphs)`` takes the classes from the graphs; ``fit(graphs, y)`` takes y instead. Either trains on all graphs
    that it is given, whatever split they carry; ``graphs.select("train")`` gives it a part of them. A share of them,
    drawn by the seed in whole groups, chooses the best epoch. Works with scikit-learn's ``clone``,
    ``cross_val_score`` and ``GridSearchCV``. Parameters: the fields of
    :class:`egocnn.config.ModelConfig` and :class:`egocnn.config.TrainConfig`, ``embed`` and ``embed_width`` (a module
    of your own in place of the node embedding), ``verbose``.
    """

    classes_: NDArray[Any]

    def fit(self, graphs: Any, y: Any = None) -> Self:
        graphs = _all_to_learn_from(graphs)
        if y is not None:
            self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
            _check_length(graphs, codes)
            graphs = graphs.replace(target=codes, class_names=tuple(map(str, self.classes_.tolist())))
        elif not graphs.is_classification:
            raise DataError("these graphs have no classes; pass y, or use EgoCNNRegressor")
        else:
            self.classes_ = np.array(graphs.class_names)
        self._learn(graphs)
        # names are texts; what y was, numbers say, is kept for load
        self.predictor_ = replace(self.predictor_, about={**self.predictor_.about, "classes": self.classes_.tolist()})
        return self

    def predict_proba(self, graphs: Any) -> NDArray[np.float64]:
        """(G, C) calibrated probabilities, columns as in ``classes_``"""
        return self._fitted.probabilities(read(graphs), device=self.get_params()["device"])

    def predict(self, graphs: Any) -> NDArray[Any]:
        """(G) the likeliest class"""
        likeliest = self.predict_proba(graphs).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[likeliest]
        return chosen

    def score(self, graphs: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy, against y or the graphs' own classes; graphs whose class is not known do not count then"""
        graphs = read(graphs)
        if y is not None:
            return float(np.average(self.predict(graphs) == np.asarray(y), weights=sample_weight))
        ours = self._fitted.class_names
        if graphs.target is None or not graphs.is_classification or (graphs.target < 0).all():
            raise DataError("these graphs have no classes to compare with; pass y")
        if not set(graphs.class_names) & set(ours):
            raise DataError(f"these graphs' classes ({', '.join(graphs.class_names)}) are not the model's; pass y")
        known = graphs.target >= 0
        truth = np.array(graphs.class_names)[graphs.target[known]]
        right = np.array(ours)[self.predict_proba(graphs[known]).argmax(axis=1)] == truth
        return float(np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight)[known]))

    @classmethod
    def load(cls, folder: str | Path, *, embed: Any = None, embed_width: int | None = None) -> Self:
        model = super().load(folder, embed=embed, embed_width=embed_width)
        if not model.predictor_.class_names:
            raise DataError(f"{folder}: this model predicts a value; load it as EgoCNNRegressor, or with egocnn.load")
        names, classes = list(model.predictor_.class_names), model.predictor_.about.get("classes")
        is_ours = isinstance(classes, list) and list(map(str, classes)) == names
        model.classes_ = np.array(classes if is_ours else names)
        return model


class EgoCNNRegressor(RegressorMixin, _EgoCNN):
    """Predict a value of a graph; targets are standardised on the training part. Used as the classifier is."""

    def fit(self, graphs: Any, y: Any = None) -> Self:
        graphs = _all_to_learn_from(graphs)
        if y is not None:
            values = np.asarray(y, dtype=np.float64)
            _check_length(graphs, values)
            graphs = graphs.replace(target=values, class_names=())
        elif graphs.target is None or graphs.is_classification:
            raise DataError("these graphs have no values to predict; pass y, or use EgoCNNClassifier")
        return self._learn(graphs)

    def predict(self, graphs: Any) -> NDArray[np.float64]:
        """(G) values in the unit of the target"""
        return self._fitted.values(read(graphs), device=self.get_params()["device"])

    def score(self, graphs: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R², against y or the graphs' own values"""
        if y is not None:
            return float(RegressorMixin.score(self, graphs, y, sample_weight))
        graphs = read(graphs)
        if graphs.target is None or graphs.is_classification or np.isnan(graphs.target).all():
            raise DataError("these graphs have no values to compare with; pass y")
        if sample_weight is not None:
            return self.score(graphs, graphs.target, sample_weight)
        return test_scores(self._fitted, graphs, device=self.get_params()["device"])["r2"]

    @classmethod
    def load(cls, folder: str | Path, *, embed: Any = None, embed_width: int | None = None) -> Self:
        model = super().load(folder, embed=embed, embed_width=embed_width)
        if model.predictor_.class_names:
            raise DataError(f"{folder}: this model predicts a class; load it as EgoCNNClassifier, or with egocnn.load")
        return model


def load(folder: str | Path, *, embed: Any = None, embed_width: int | None = None) -> Any:
    """The classifier or regressor saved in a run folder."""
    predictor = Predictor.load(folder, embed=embed, embed_width=embed_width)
    kind = EgoCNNClassifier if predictor.class_names else EgoCNNRegressor
    return kind.load(folder, embed=embed, embed_width=embed_width)


def _all_to_learn_from(graphs: Any) -> Graphs:
    """The graphs without a split of their own: a fold of scikit-learn mixes its parts, or has none to train on."""
    return read(graphs).replace(part=None)


def _plain(value: Any) -> Any:
    """Numpy's numbers, from a grid of settings say, as Python's: only these can be written as JSON."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def _names(classes: Any) -> str | list[str]:
    """Class names as the model has them: texts, whatever y was."""
    return str(classes) if np.ndim(classes) == 0 else [str(name) for name in np.asarray(classes).tolist()]


def _check_length(graphs: Graphs, y: NDArray[Any]) -> None:
    if y.shape != (len(graphs),):
        raise DataError(f"y has shape {y.shape} for {len(graphs)} graphs")
