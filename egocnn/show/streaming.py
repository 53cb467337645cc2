"""A trained model and graphs, in portions where they are many -> a store, a table of predictions, structures."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from egocnn.config import IF_THERE, ExplainConfig, ReadConfig
from egocnn.data.collection import choose_part
from egocnn.data.graphs import Graphs
from egocnn.data.read import Source, read, stream_source
from egocnn.data.rows import RowPortion
from egocnn.data.schema import DRAWN
from egocnn.data.sources.text import listed
from egocnn.data.store import Store, Stored, is_store, write_store
from egocnn.data.store.manifest import Manifest
from egocnn.data.store.write import check_place
from egocnn.errors import ConfigError, DataError, MissingColumnError
from egocnn.show.tables import Kinds, table_writer
from egocnn.train.predictions import as_predicted, prediction_kinds, prediction_rows

if TYPE_CHECKING:
    from egocnn.explain.structure import CriticalStructure
    from egocnn.model import Model

log = logging.getLogger("egocnn")
Report = Callable[[int], None]  # Called with how many graphs are done.
ON_PAGE = 1000
"""Critical structures of a store that are shown on the page of a report; the file beside it holds them all."""


def read_as_trained(source: Any, predictor: "Model", **said: Any) -> Graphs:
    """The graphs of a source, read as the model's training data were where the user does not say otherwise."""
    if isinstance(source, Graphs):
        return source
    if isinstance(source, Iterator):  # which can be gone through once
        source = list(source)
    usual = usual_settings(predictor)
    # new data need not have the target, nor name its graphs as the training data did
    for absent in ((), ("name",), ("target",), ("name", "target")):
        try:
            graphs = read(source, **{name: value for name, value in usual.items() if name not in absent} | said)
        except MissingColumnError as error:
            missing = error
            continue
        is_other = "target" in absent and "target" in usual and "target" not in said
        return graphs.replace(target=None, class_names=(), targets=()) if is_other else as_predicted(graphs, predictor)
    raise missing


def usual_settings(predictor: "Model") -> dict[str, Any]:
    """How the training data of the model were read, as far as that is of use for others."""
    trained = predictor.about.get("read", {})
    of_rows, of_networks = ("smiles", "target", "name", "hydrogens", "salts"), ("node_label", "node_attributes")
    kinds = (*of_rows, *of_networks, "edge_label", "edge_weight")
    usual = {name: trained[name] for name in kinds if trained.get(name)}
    if predictor.targets:  # as words: some rows alone do not show which are numbers
        return {**usual, "task": "classification", "target": ",".join((*predictor.targets, IF_THERE))}
    return {**usual, "task": "classification" if predictor.class_names else "regression"}


def open_store(data: str, said: Mapping[str, Any] | None = None) -> Store | None:
    """The store that DATA names, if it names one; ``said``: how it is to be read, which must be how it was."""
    path = Path(os.path.expanduser(data))  # noqa: PTH111 — unlike pathlib's, it lets ~somebody pass
    if not is_store(path):
        return None
    store, said = Store.open(path), said or {}
    for name, usual in asdict(ReadConfig()).items():
        was = store.manifest.read.get(name, usual)
        # whatever the column of the split is called, it says what the part of each graph is
        is_fine = name == "split" and ("part" in store.manifest.columns or said.get(name) in DRAWN)
        if name in said and said[name] != was and not is_fine:
            flag = f"--{name.replace('_', '-')}"
            how = f"without {flag}" if was == usual else f"with {flag}" if was is True else f"with {flag} {was}"
            raise ConfigError(f"{store.folder}: holds graphs that were read {how}; {flag} is said to egocnn prepare")
    return store


def prepare(
    data: str, folder: Path, config: ReadConfig, *, part: str = "", limit: int | None = None, **settings: Any
) -> Manifest:
    """Write the graphs of DATA as a store, from a source that can be read in portions without holding it whole.
    ``settings``: ``overwrite`` and ``report``, as :func:`egocnn.data.store.write_store` takes them."""
    check_place(folder, overwrite=settings.get("overwrite", False))
    if (store := open_store(data)) is not None:
        source = Source(choose_part(Stored.of(store), data, part, limit).portions())
    else:
        try:
            # only all graphs together have the names that a part of them is counted by
            stream = None if part or limit is not None else stream_source(Path(data), config)
        except OSError as error:
            raise DataError(f"{data}: cannot be read ({error.strerror})") from None
        source = stream or Source(choose_part(read(data, config), data, part, limit).portions())
    return write_store(source.portions, folder, source=data, read=asdict(config), facts=source.facts, **settings)


def explanation_kinds(predictor: "Model") -> dict[str, Any]:
    """The columns of an explanation, and what each holds; classes of a classifier, else a value."""
    classes = {"predicted": "string", "probability": "double", "explained": "string"}
    numbers = dict.fromkeys(("base", "output"), "double")
    own = classes if predictor.class_names else {"predicted": "double"}
    return {**own, **numbers, "contributions": "list<float>", "critical_atoms": "list<int>"}


def explanation_row(found: "CriticalStructure") -> dict[str, Any]:
    """The same columns of one structure, atoms in the order of the input."""
    row = {name: getattr(found, name) for name in ("predicted", "probability", "explained", "base", "output")}
    return {**row, "contributions": found.node_importance.tolist(), "critical_atoms": found.critical_nodes.tolist()}


@dataclass(frozen=True, slots=True)
class Echo:
    """The columns of a table that is written: the graph's name, what came in, what was found, and why it was not."""

    kinds: Kinds
    came_in: Mapping[str, str]  # column to write -> column that came in

    @staticmethod
    def of(came_in: Mapping[str, Any], found: Mapping[str, Any]) -> "Echo":
        """Both by name, with what they hold; a column that came in under the name of ours becomes input_NAME."""
        names: dict[str, str] = {}
        for name in came_in:
            own = name
            while own in ("name", "error", *found) or own in names or (own != name and own in came_in):
                own = f"input_{own}"
            names[own] = name
        kinds = {own: came_in[name] for own, name in names.items()}
        return Echo({"name": "string", **kinds, **found, "error": "string"}, names)

    def rows(self, portion: RowPortion, found: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """One for every row of the portion; ``found``: for those that have a graph."""
        several = iter(found)
        for row, name, error in zip(portion.rows, portion.names, portion.errors, strict=True):
            own = {"error": error} if error else next(several)
            yield {"name": name, **{to: row.get(column) for to, column in self.came_in.items()}, **own}


def predict_to_file(
    predictor: "Model", portions: Iterable[RowPortion], path: Path, columns: Mapping[str, Any], *,
    see: Callable[[Graphs], None] = lambda _: None, device: str = "auto",
) -> dict[str, Any]:  # fmt: skip
    """Write the predictions of all portions to one file; how many there are, and their scores where the truth is known,
    for which alone predictions are kept. ``columns``: what comes in, and what it holds; ``see`` gets the graphs."""
    from egocnn.train.metrics import known_truth, recalls, scores_of, together

    done, failed, first = 0, 0, ""
    doubt: dict[str, float] = dict.fromkeys(predictor.targets or ("",), 0.0)
    kept: dict[str, list[tuple[NDArray[Any], NDArray[Any]]]] = {name: [] for name in doubt}
    echo = Echo.of(columns, prediction_kinds(predictor))

    def answered(graphs: Graphs) -> Any:
        graphs = as_predicted(graphs, predictor)
        found = list(predictor.by_target(graphs, device=device))
        return graphs, found, list(prediction_rows(predictor, graphs, found))

    with table_writer(path, echo.kinds) as write:
        for portion in portions:
            portion, answer = portion.answered(answered)
            wrong = [(name, error) for name, error in zip(portion.names, portion.errors, strict=True) if error]
            failed += len(wrong)
            first = first or next((f"{name}: {error}" for name, error in wrong), "")
            rows: Sequence[Mapping[str, Any]] = ()
            if portion.graphs is not None:
                see(portion.graphs)
                graphs, found, rows = answer
                for name, one, predicted, spread in found:
                    doubt[name] += 0.0 if spread is None else float(spread.sum())
                    known, truth = known_truth(graphs.of_target(name) if name else graphs, one.class_names)
                    kept[name] += [(predicted[known], truth)] if len(truth) else []
                done += len(graphs)
            write(list(echo.rows(portion, rows)))
        if not done:  # the wrong column, say; what was in the file stays
            raise DataError(f"none of {failed} rows can be predicted; row {first}" if failed else "no rows to predict")
    result: dict[str, Any] = {"graphs": done, "failed": failed, "file": str(path)}
    result |= {"prediction": rows[0]} if done == 1 and rows else {}  # of a molecule that was typed: the answer
    scores = {name: {"mean_spread": doubt[name] / done} if len(predictor.networks) > 1 else {} for name in kept}
    for name, own in kept.items():
        if own:
            predicted, truth = map(np.concatenate, zip(*own, strict=True))
            classes = predictor.of_target(name or None).class_names
            if classes and (truth < 0).all():
                log.warning("no class of these graphs is one of the model's (%s): all count as missed", listed(classes))
            scores[name] |= scores_of(predicted, truth)
            if classes:
                result[f"{name}.recall" if name else "recall"] = recalls(predicted, truth, classes)
    return result | together(scores)


def explain_portions(
    predictor: "Model", portions: Iterable[Graphs], config: ExplainConfig, report: Report | None = None, **settings: Any
) -> "Iterator[CriticalStructure]":
    """The critical structures of all portions in order; ``settings`` are those of :func:`egocnn.explain.explain`."""
    from egocnn.explain import explain

    done = 0
    for graphs in portions:
        tell = None if report is None else (lambda some, before=done: report(before + some))
        found = explain(predictor, graphs, config, report=tell, **settings)
        done += len(found)
        yield from found
