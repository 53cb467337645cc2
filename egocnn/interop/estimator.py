"""What the scikit-learn style classifier and regressor share: settings, fitting, explaining, saving and loading."""

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from inspect import cleandoc
from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from torch import nn

import egocnn.config as config
from egocnn.config import ExplainConfig, ModelConfig, ReadConfig, TrainConfig, field_help
from egocnn.data.graphs import Graphs
from egocnn.data.read import read, targets_inside, with_named_targets
from egocnn.encode.familiar import check_familiar
from egocnn.errors import rule
from egocnn.explain import AttentionHead, explain, fit_attention, load_attention, save_attention
from egocnn.explain.patterns.compare import Comparison, compare
from egocnn.explain.structure import Structures
from egocnn.files import write_json, write_text
from egocnn.interop import targets
from egocnn.model import DIGESTS, Model
from egocnn.show.streaming import read_as_trained
from egocnn.train.history import History
from egocnn.train.metrics import in_words, test_scores
from egocnn.train.predictions import as_predicted
from egocnn.train.progress import training_report
from egocnn.train.recipe import learn
from egocnn.train.run import digests, facts, history_csv, versions
from egocnn.train.validation import with_known_target


class Estimator(BaseEstimator):
    """A model whose kind, classifier or regressor, says what its targets are."""

    model_: Model
    history_: History
    attention_: tuple[AttentionHead, ...]
    device: config.Device
    embed: nn.Module | None
    embed_width: int | None
    verbose: bool
    _kind: ClassVar[str]  # "class" or "value": what it predicts

    def __init__(
        self,
        *,
        embedding: config.Embedding = "patchy-san",
        slots: int = 10,
        k: int = 16,
        width: int = 128,
        depth: int = 3,
        tie: bool | config.Auto = False,
        readout: config.Readout = "mean+log+max",
        jump: bool = True,
        count_inputs: bool = True,
        sort_nodes: int = 64,
        hidden: int = 128,
        head_norm: bool = True,
        pool_norm: bool = True,
        pool_limit: float = 3.0,
        pool_dropout: float = 0.5,
        dropout: float = 0.0,
        degrees: bool = True,
        networks: int = 3,
        epochs: int = 50,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        schedule: config.Schedule = "cosine",
        patience: int = 20,
        judgements: int = 80,
        monitor: config.Monitor = "auto",
        validation: float = 0.1,
        parts: float = 0.3,
        missing: float = 1.0,
        class_weights: bool = False,
        precision: config.Precision = "auto",
        seed: int = 0,
        device: config.Device = "auto",
        embed: nn.Module | None = None,
        embed_width: int | None = None,
        verbose: bool = False,
    ) -> None:
        """Set how the network is built and trained; nothing is computed before ``fit``.

        A setting that is out of its range is refused by ``fit``, as scikit-learn wants it."""
        for name, value in locals().copy().items():
            if name != "self":
                setattr(self, name, value)

    if TYPE_CHECKING:  # scikit-learn's own have no types

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **settings: Any) -> Self: ...

    def fit(self, graphs: Any, y: Any = None, **reading: Any) -> Self:
        """Train on these graphs.

        Arguments:
            graphs: Anything that :func:`egocnn.read` takes: SMILES, RDKit molecules, a DataFrame, a file, ``Graphs``.
            y: A class for every graph, or a number for a regressor, in place of the graphs' own; or the name of the
                column that holds them; of a DataFrame also a list of several. Or several targets, gaps among them, as
                the columns of a DataFrame.
            reading: Fields of :class:`egocnn.config.ReadConfig`, ``smiles="structure"`` or ``hydrogens=True`` say;
                what is predicted later is read alike.

        Returns:
            The estimator itself.

        Raises:
            DataError: there is nothing of the right kind to predict, or ``y`` is of another length, has gaps, or is of
                mixed kinds.
            ConfigError: a setting is out of its range.
            DivergedError: no epoch gave a finite loss."""
        known = set(getattr(graphs, "columns", ())) if isinstance(y, (list, tuple)) and y else set()
        if isinstance(y, str) or (known and len(y) < len(graphs) and known.issuperset(map(str, y))):
            reading, y = {**reading, "target": y}, None
        table = y if len(getattr(y, "columns", ())) > 1 else None
        y = y if table is None else None
        task: config.Task = "regression" if y is None and self._kind == "value" else "auto"
        source = list(graphs) if isinstance(graphs, Iterator) else graphs
        how = ReadConfig(**{"task": task, **reading})
        how = with_named_targets(source, how, guess=y is None and table is None)
        graphs = read(source, how)
        is_typed = y is None and not isinstance(source, (str, Path, Graphs))
        columns = targets_inside(source, how) if is_typed else {}
        if table is not None:
            graphs, columns = targets.several_targets(graphs, table, task), {str(n): table[n] for n in table.columns}
        if len(columns) == 1 and hasattr(source, "columns"):  # what is predicted later has it, too
            how = replace(how, target=next(iter(columns)))
        origin = {} if isinstance(source, Graphs) else {"read": asdict(how)}
        y = None if y is None else targets.checked_targets(y, len(graphs))
        # without a split of their own: a fold of scikit-learn mixes its parts, or has none to train on
        graphs, about = self._with_targets(graphs.replace(part=None), y)
        graphs = with_known_target(graphs) if y is None else graphs
        kinds = graphs.targets or [(name, graphs.class_names) for name in columns]
        typed = {name: targets.as_in_column(names, columns[name]) for name, names in kinds if names and name in columns}
        about |= {"classes_of": typed} if graphs.targets else next(iter(typed.values()), {})
        # numpy's numbers, from a grid of settings say, as Python's: only these can be written as JSON
        given = self.get_params(deep=False).items()
        settings = {name: value.item() if isinstance(value, np.generic) else value for name, value in given}
        model = ModelConfig(**{f.name: settings[f.name] for f in fields(ModelConfig)})
        train = TrainConfig(**{f.name: settings[f.name] for f in fields(TrainConfig)})
        own: dict[str, Any] = {"embed": self.embed, "embed_width": self.embed_width}
        with training_report(train, visible=self.verbose) as report:
            trained, self.history_ = learn(graphs, model, train, report=report, **own)
        about |= origin | {"train": asdict(train), "versions": versions()}
        self.model_ = replace(trained, about={**trained.about, **about})
        return self

    def _with_targets(self, graphs: Graphs, y: NDArray[Any] | None) -> tuple[Graphs, dict[str, Any]]:
        """The graphs with what is to be predicted, y where it is given, and what to save of it beside the model."""
        raise NotImplementedError

    def _read(self, graphs: Any, *, scored: bool = False, asked: bool = False) -> Graphs:
        """The graphs of any source, read as those that were trained on.

        Where a value is predicted that y held, a column that happens to be called label may hold anything, unless it is
        to be ``scored``. Where they are ``asked`` about, a warning says what is unlike those that were trained on."""
        model = self._fitted
        is_any = not (model.targets or scored or model.class_names or model.about.get("read", {}).get("target"))
        found = read_as_trained(graphs, model, **({"task": "auto"} if is_any else {}))
        return check_familiar(model.encoder, found) if asked else found

    def _given(self, y: Any) -> Any:
        """The same, None where it names the column that the model was trained on: graphs bring that along."""
        is_name = isinstance(y, str) and y == self._fitted.about.get("read", {}).get("target")
        return None if is_name else y

    @property
    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"this {type(self).__name__} has not been fitted; call fit first")
        return self.model_

    def predict(self, graphs: Any) -> Any:
        """The likeliest class, or the predicted number, of every graph.

        Arguments:
            graphs: Anything that :func:`egocnn.read` takes.

        Returns:
            (G) classes, as ``y`` had them, else by name, or values in the unit of the target. Of several targets these
            by the target's name."""
        return self._of_each_target(graphs)

    def _of_each_target(self, graphs: Any, *, proba: bool = False) -> Any:
        """(G) classes, or (G, C) probabilities of those, and (G) values; of several targets these by name."""
        found, graphs = dict[str, Any](), self._read(graphs, asked=True)
        for name, one, predicted, _ in self._fitted.by_target(graphs, device=self.device):
            is_class = one.class_names and not proba
            found[name] = self._classes_of(name or None)[predicted.argmax(1)] if is_class else predicted
        return found if self._fitted.targets else found[""]

    def _mean_score(self, graphs: Any, y: Any, name: str, sample_weight: Any) -> float:
        """The mean over several targets of the score with this name, each where it is known."""
        rule(sample_weight is None, "graphs have no weights in the score of several targets")
        graphs = self._read(graphs)
        graphs = graphs if y is None else targets.several_targets(graphs, y, "classification")
        found = test_scores(self._fitted, as_predicted(graphs, self._fitted), device=self.device)
        rule(name in found, f"these graphs have no known target that is scored by {in_words(name)}; pass y")
        return found[name]

    def _classes_of(self, target: str | None = None) -> NDArray[Any]:
        """The classes of a target, by default the first, as the data had them."""
        model = self._fitted
        several = model.about.get("classes_of") if model.targets else None
        about = several.get(target or model.targets[0]) if isinstance(several, dict) else model.about
        return targets.restored_classes(model.of_target(target).class_names, about if isinstance(about, dict) else {})

    def spread(self, graphs: Any) -> NDArray[np.float64] | None:
        """The model's doubt in its prediction for every graph, by how far its networks disagree.

        Arguments:
            graphs: Anything that :func:`egocnn.read` takes.

        Returns:
            (G) standard deviations: of a classifier over the networks, of the probability of the predicted class; of a
            regressor of its error, in the unit of the target, calibrated on the validation part. None where there is
            one network."""
        return self._fitted.spread(self._read(graphs, asked=True), device=self.device)

    def explain(
        self, graphs: Any, *, target: str | None = None, classes: Any = None, fidelity: bool = True, **settings: Any
    ) -> Structures:
        """The critical structure behind the prediction for every graph.

        The paper's technique first trains its attention layer on these graphs, unless :meth:`fit_attention` has trained
        it already.

        Arguments:
            graphs: Anything that :func:`egocnn.read` takes.
            target: Of several targets the one to explain (default: the first).
            classes: The class to explain, one for all graphs or one for each (default: the predicted ones).
            fidelity: Predict once more without each structure, and with nothing else.
            settings: The fields of :class:`egocnn.config.ExplainConfig`, ``technique="occlusion"`` say.

        Returns:
            One :class:`egocnn.CriticalStructure` per graph, in order, its classes as in ``classes_``."""
        graphs, how = self._read(graphs, asked=True), ExplainConfig(**settings)
        if how.technique == "paper" and not hasattr(self, "attention_"):
            self.fit_attention(graphs)
        if classes is not None:  # by name, as the model has them, whatever y was
            classes = str(classes) if np.ndim(classes) == 0 else list(map(str, np.asarray(classes).tolist()))
        more: dict[str, Any] = {"attention": getattr(self, "attention_", None), "device": self.device}
        found = explain(self._fitted, graphs, how, target=target, classes=classes, fidelity=fidelity, **more)
        names, classes = self._fitted.of_target(target).class_names, self._classes_of(target).tolist()
        return Structures(targets.with_classes(structure, names, classes) for structure in found)

    def compare(self, first: Any, second: Any, *, target: str | None = None, classes: Any = None) -> Comparison:
        """What changed from one molecule to another, and what that did to the prediction.

        Arguments:
            first: A SMILES or an RDKit molecule.
            second: Another, given alike, however different it is.
            target: Of several targets the one to explain (default: the first).
            classes: The class whose probability counts (default: the last, of two the positive one).

        Returns:
            Both explained, the groups that one has and the other has not, and how much these contribute."""
        if classes is None and (names := self._fitted.of_target(target).class_names):
            classes = names[-1]
        how: dict[str, Any] = {"target": target, "classes": classes, "fidelity": False, "select": "threshold"}
        return compare(*self.explain([first, second], **how))

    def fit_attention(self, graphs: Any, **settings: Any) -> Self:
        """Train the paper's attention layer and linear head on the frozen ego layers; see :mod:`egocnn.explain`.

        Arguments:
            graphs: Anything that :func:`egocnn.read` takes; where the target is not known, the prediction stands in.
            settings: ``epochs``, ``learning_rate``, ``seed`` and ``device`` of this second training.

        Returns:
            The estimator itself."""
        self.attention_ = fit_attention(self._fitted, self._read(graphs), **{"device": self.device, **settings})
        return self

    def save(self, folder: str | Path) -> None:
        """Write a run folder that :func:`egocnn.load` and ``egocnn predict`` read.

        Arguments:
            folder: Where to; it is made where it is missing."""
        self._fitted.save(folder)
        if hasattr(self, "attention_"):
            save_attention(self.attention_, Path(folder))
        if hasattr(self, "history_"):
            metrics = facts(self._fitted, self.history_)
            write_text(Path(folder) / "history.csv", history_csv(self.history_))
            write_json(Path(folder) / "metrics.json", metrics | {DIGESTS: digests(Path(folder), metrics)})

    @classmethod
    def load(cls, folder: str | Path, *, embed: Any = None, embed_width: int | None = None) -> Self:
        """Read a run folder; nothing in it is executed.

        Arguments:
            folder: What :meth:`save` or ``egocnn train`` wrote.
            embed: The module in place of the node embedding, where the model was trained with one.
            embed_width: The width that this module returns.

        Returns:
            A fitted estimator.

        Raises:
            RunError: the folder is incomplete or damaged.
            DataError: the folder holds a model of the other kind."""
        loaded = Model.load(folder, embed=embed, embed_width=embed_width)
        kind, name = ("class", "EgoCNNClassifier") if loaded.predicts_classes else ("value", "EgoCNNRegressor")
        rule(kind == cls._kind, f"{folder}: this model predicts a {kind}; load it as {name}, or with egocnn.load")
        return cls._of(loaded, Path(folder), embed=embed, embed_width=embed_width)

    @classmethod
    def _of(cls, loaded: Model, folder: Path, **embedding: Any) -> Self:
        """The estimator of a model that was read from this folder."""
        trained = {name: value for name, value in loaded.about.get("train", {}).items() if name != "device"}
        model = cls(**asdict(loaded.config), **trained, **embedding)
        model.model_ = loaded
        if (attention := load_attention(folder, loaded)) is not None:
            model.attention_ = attention
        return model


MEANINGS = {
    **field_help(ModelConfig),
    **field_help(TrainConfig),
    "embed": "A module that takes the place of the node embedding: a batch of N nodes in, (N, embed_width) out.",
    "embed_width": "The width that this module returns.",
    "verbose": "Show the progress of the training.",
}
_listed = "\n".join(fill(f"{name}: {text}", 112, subsequent_indent=" " * 4) for name, text in MEANINGS.items())
Estimator.__init__.__doc__ = f"{cleandoc(Estimator.__init__.__doc__ or '')}\n\nArguments:\n{indent(_listed, ' ' * 4)}\n"
