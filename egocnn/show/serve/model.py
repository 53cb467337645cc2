"""A trained model as the page meets it: lines of SMILES or the bytes of a file -> plain answers, or a whole report."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from egocnn.config import ReadConfig
from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.molecules import ATOM, WORDS
from egocnn.data.sources.smiles import from_smiles, parse_smiles
from egocnn.data.sources.text import short
from egocnn.errors import DataError, MissingExtraError
from egocnn.explain import explain
from egocnn.explain.structure import CriticalStructure
from egocnn.model import Model
from egocnn.show.as_trained import read_as_trained
from egocnn.show.drawing.layout import positions
from egocnn.show.report import summarise
from egocnn.show.report.encoding import encode
from egocnn.show.report.folder import file_name
from egocnn.show.report.page import page
from egocnn.show.serve.desk import Deliver, Plain, Question
from egocnn.show.serve.settings import FILE_SUFFIXES, MOST_DRAWN, MOST_GRAPHS, MOST_NODES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServedModel:
    predictor: Model
    name: str
    """what the page calls it"""
    device: str = "cpu"

    @staticmethod
    def load(run: Path, *, device: str = "cpu") -> ServedModel:
        return ServedModel(predictor=Model.load(run), name=run.resolve().name, device=device)

    # ── what it is ────────────────────────────────────────────────────────────────────────────────

    @property
    def data(self) -> str:
        """What it was trained on, without the folder: that is nobody else's business."""
        return PurePath(str(self.predictor.about.get("data", ""))).name

    @property
    def reads_smiles(self) -> bool:
        known = self.predictor.encoder
        atoms = bool(known.node_label_names) and all(ATOM.fullmatch(label) for label in known.node_label_names)
        bonds = not known.edge_label_names or bool(set(WORDS) & set(known.edge_label_names))
        return atoms and bonds and len(known.attr_mean) == 0

    @property
    def hydrogens(self) -> bool:
        """Whether hydrogen atoms are nodes: asked for in the training, or there in its graphs."""
        asked = bool(self.predictor.about.get("read", {}).get("hydrogens"))
        return asked or "H" in self.predictor.encoder.node_label_names

    def about(self) -> Plain:
        known = self.predictor.encoder
        return {
            "name": self.name,
            "data": self.data,
            "task": "classification" if known.class_names else "regression",
            "classes": list(known.class_names),
            "reads_smiles": self.reads_smiles,
            "hydrogens": self.hydrogens,
            "node_labels": list(known.node_label_names),
            "edge_labels": list(known.edge_label_names),
            "node_attributes": 0 if known.by_degree else len(known.attr_mean),
            "parameters": self.predictor.network.n_parameters,
        }

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def read_lines(self, lines: Sequence[str], first: int = 1) -> Graphs:
        """Molecules, each called by what stands after its SMILES, or by the SMILES itself."""
        self.check_smiles()
        parts = [line.split(maxsplit=1) or [""] for line in lines]
        smiles, names = [part[0] for part in parts], [part[-1].strip() for part in parts]
        try:
            graphs = from_smiles(smiles, names=names, config=ReadConfig(hydrogens=self.hydrogens))
        except MissingExtraError:
            raise
        except DataError as error:
            raise _first_refusal(smiles, first) or error from None
        return _checked(graphs)

    def check_smiles(self) -> None:
        if not self.reads_smiles:
            origin = f" ({self.data})" if self.data else ""
            raise DataError(
                f"this model does not read SMILES: its training graphs{origin} are not labelled with atoms; "
                "send a file of graphs like those"
            )

    def read_file(self, name: str, data: bytes) -> Graphs:
        """The readers take files: this one lies in a private folder for as long as they read it."""
        safe = file_name(PurePath(name.replace("\\", "/")).name)
        if PurePath(safe).suffix.lower() not in FILE_SUFFIXES:
            raise DataError(f"{short(name)}: a file of graphs ends in {', '.join(FILE_SUFFIXES)}")
        if PurePath(safe).suffix.lower() in FILE_SUFFIXES[:3]:
            self.check_smiles()
        with tempfile.TemporaryDirectory(prefix="egocnn-") as folder:
            path = Path(folder, safe)
            path.write_bytes(data)
            try:
                return _checked(read_as_trained(path, self.predictor))
            except DataError as error:
                told = str(error).replace(f"{folder}/", "").replace("; --skip-invalid leaves such rows out", "")
                raise DataError(told) from None

    # ── answering ─────────────────────────────────────────────────────────────────────────────────

    def answer(self, questions: Sequence[Question], deliver: Deliver) -> None:
        """Explain the graphs of all questions in one call, and deliver every answer as soon as it is drawn."""
        read = self._read(questions, deliver)
        if not read:
            return
        graphs = Graphs.concat([some for _, some in read]) if len(read) > 1 else read[0][1]
        structures = self._explain(graphs, read[0][0])
        every_class = self._every_class(graphs, structures)
        first = 0
        for question, some in read:
            own = slice(first, first + len(some))
            rows = zip(structures[own], every_class[own], strict=True)
            deliver(question, [self._plain(structure, row, question.picture) for structure, row in rows])
            first += len(some)

    def report(self, graphs: Graphs, data: str) -> str:
        """One self-contained HTML page about these graphs."""
        structures = self._explain(graphs, Question())
        summary = summarise(structures, model=self.name, data=data, class_names=self.predictor.class_names)
        return page(encode(structures, summary, _places), summary.title)

    def _read(self, questions: Sequence[Question], deliver: Deliver) -> list[tuple[Question, Graphs]]:
        if all(question.graphs is None for question in questions) and len(questions) > 1:
            try:
                together = self.read_lines([line for question in questions for line in question.lines])
            except DataError:
                pass  # one of them is at fault, and must hear of it alone
            else:
                read, first = [], 0
                for question in questions:
                    read.append((question, together[first : first + len(question.lines)]))
                    first += len(question.lines)
                return read
        read = []
        for question in questions:
            try:
                graphs = question.graphs
                read.append((question, self.read_lines(question.lines, question.first) if graphs is None else graphs))
            except Exception as error:  # whoever asked hears of it, and nobody else
                deliver(question, error)
        return read

    def _explain(self, graphs: Graphs, question: Question) -> list[CriticalStructure]:
        return explain(
            self.predictor, graphs, classes=question.explained, fidelity=question.fidelity, device=self.device
        )

    def _every_class(self, graphs: Graphs, structures: Sequence[CriticalStructure]) -> list[list[float]]:
        """(G, C) probabilities; none where the model predicts a value"""
        names = self.predictor.class_names
        if not names:
            return [[] for _ in structures]
        if len(names) > 2:
            rows: list[list[float]] = self.predictor.probabilities(graphs, device=self.device).tolist()
            return rows
        likely = [structure.probability or 0.0 for structure in structures]
        # of two classes the other has the rest: this saves a pass over the graphs
        return [
            [p if name == structure.predicted else 1 - p for name in names]
            for p, structure in zip(likely, structures, strict=True)
        ]

    def _plain(self, structure: CriticalStructure, every_class: Sequence[float], picture: bool) -> Plain:
        graph, known = structure.graph, self.predictor.encoder
        plain = structure.to_plain()
        labels = list(graph.node_label or ())
        unseen = set(labels) - set(known.node_label_names) if known.node_label_names else set()
        return {
            "name": plain["name"],
            "smiles": graph.smiles,
            "predicted": plain["predicted"],
            "probability": plain["probability"],
            "true": plain["true"],
            "probabilities": [
                {"name": name, "probability": value} for name, value in zip(known.class_names, every_class, strict=True)
            ],
            "explained": plain["class"],
            "node_labels": labels,
            "node_importance": plain["node_importance"],
            "edge_importance": plain["edge_importance"],
            "critical_nodes": plain["critical_nodes"],
            "critical_edges": plain["critical_edges"],
            "fidelity": plain["fidelity"],
            "unseen_labels": sorted(unseen),
            "svg": structure.draw() if picture and graph.n_nodes <= MOST_DRAWN else None,
        }


def _places(graph: Graph) -> Floats:
    """Where a report draws the nodes; a giant molecule is laid out as any other graph."""
    return positions(graph if graph.n_nodes <= MOST_DRAWN else replace(graph, smiles=None))


def _checked(graphs: Graphs) -> Graphs:
    if len(graphs) > MOST_GRAPHS:
        raise DataError(f"{len(graphs)} graphs; {MOST_GRAPHS} are explained at a time, and egocnn explain takes more")
    if graphs.n_nodes > MOST_NODES:
        raise DataError(f"{graphs.n_nodes} nodes; {MOST_NODES} are explained at a time, and egocnn explain takes more")
    return graphs


def _first_refusal(smiles: Sequence[str], first: int) -> DataError | None:
    """What is wrong with the first SMILES that is none."""
    for number, text in enumerate(smiles, first):
        try:
            parse_smiles(text)
        except DataError as error:
            return DataError(f"line {number}: {error}") if len(smiles) > 1 or first > 1 else error
    return None
