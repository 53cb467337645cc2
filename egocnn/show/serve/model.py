"""A trained model behind the page: lines of SMILES or the bytes of a file -> plain answers, or a whole report."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.molecules import ATOM, WORDS
from egocnn.data.schema import SEPARATOR
from egocnn.data.sources.smiles import from_smiles
from egocnn.data.sources.text import short
from egocnn.encode.encoder import Encoder, TargetScale
from egocnn.encode.familiar import check_familiar
from egocnn.errors import DataError, rule
from egocnn.explain import explain
from egocnn.explain.structure import CriticalStructure, wording
from egocnn.model import Model
from egocnn.show.report import summarise
from egocnn.show.report.folder import encode, file_name, page
from egocnn.show.serve import settings
from egocnn.show.serve.settings import ExplainJob, Plain
from egocnn.show.streaming import read_as_trained


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServedModel:
    """A model with the name that the page shows and the device that it runs on."""

    predictor: Model
    name: str
    device: str = "cpu"

    @property
    def data(self) -> str:
        """The training data without their folder, which is private."""
        return PurePath(str(self.predictor.about.get("data", ""))).name

    @property
    def reads_smiles(self) -> bool:
        """Whether the training graphs were molecules, so that a SMILES gives the labels that the model knows."""
        known = self.predictor.encoder
        atoms = bool(known.node_label_names) and all(map(ATOM.fullmatch, known.node_label_names))
        bonds = not known.edge_label_names or bool(set(WORDS) & set(known.edge_label_names))
        return atoms and bonds and len(known.attr_mean) == 0

    @property
    def hydrogens(self) -> bool:
        """Whether hydrogen atoms are nodes: by a setting of the training, or in its graphs."""
        by_setting = bool(self.predictor.about.get("read", {}).get("hydrogens"))
        return by_setting or "H" in self.predictor.encoder.node_label_names

    def about(self) -> Plain:
        """What the model is, reads and predicts."""
        known = self.predictor.encoder
        return {
            "task": "several targets" if known.targets_of else _task(known),
            "classes": list(known.class_names),
            "target": self.predictor.about.get("read", {}).get("target") if not known.targets_of else None,
            "targets": [
                {"name": each.name, "task": _task(each), "classes": list(each.class_names)} for each in known.targets_of
            ],
            "node_labels": list(known.node_label_names),
            "edge_labels": list(known.edge_label_names),
            "node_attributes": 0 if known.by_degree else len(known.attr_mean),
            "networks": len(self.predictor.networks),
            "parameters": self.predictor.n_parameters,
            **{name: getattr(self, name) for name in ("name", "data", "reads_smiles", "hydrogens")},
        }

    def read_lines(self, lines: Sequence[str], first: int = 1) -> Graphs:
        """Molecules, each called by what stands after its SMILES, or by the SMILES itself; bad lines are skipped."""
        self.check_smiles()
        parts = [line.split(maxsplit=1) or [""] for line in lines]
        smiles, names = [part[0] for part in parts], [part[-1].strip() for part in parts]
        try:
            salts = self.predictor.about.get("read", {}).get("salts", "keep")
            how = ReadConfig(hydrogens=self.hydrogens, salts=salts, skip_invalid=True)
            return self._checked(from_smiles(smiles, names=names, config=how))
        except DataError as error:
            if (found := re.search(r"molecule (\d+): (.*)", str(error), re.DOTALL)) is None:
                raise
            place = f"line {int(found[1]) + first}: " if len(lines) > 1 or first > 1 else ""
            raise DataError(place + found[2]) from None

    def check_smiles(self) -> None:
        origin = f" ({self.data})" if self.data else ""
        why = f"its training graphs{origin} are not labelled with atoms; send a file of graphs like those"
        rule(self.reads_smiles, f"this model does not read SMILES: {why}")

    def read_file(self, name: str, data: bytes) -> Graphs:
        """The first graphs of an uploaded file, which lies in a private folder while it is read, without bad rows."""
        safe = file_name(PurePath(name.replace("\\", "/")).name)
        suffix = PurePath(safe).suffix.lower()
        if suffix not in settings.FILE_SUFFIXES:
            raise DataError(f"{short(name)}: a file of graphs ends in {', '.join(settings.FILE_SUFFIXES)}")
        if suffix in settings.OF_MOLECULES:
            self.check_smiles()
        with tempfile.TemporaryDirectory(prefix="egocnn-") as folder:
            path = Path(folder, safe)
            path.write_bytes(data)
            try:
                return self._checked(read_as_trained(path, self.predictor, skip_invalid=True)[: settings.MOST_GRAPHS])
            except DataError as error:
                raise DataError(str(error).replace(f"{folder}/", "")) from None

    def _checked(self, graphs: Graphs) -> Graphs:
        for what, count in (("nodes", graphs.n_nodes), ("edges", graphs.n_edges)):
            most = getattr(settings, f"MOST_{what.upper()}")
            rule(count <= most, f"{count} {what}; {most} are explained at a time, and egocnn explain takes more")
        return check_familiar(self.predictor.encoder, graphs, warn=False)  # each answer names what was not known

    def answer(self, jobs: Sequence[ExplainJob], data: bytes = b"") -> Iterator[tuple[ExplainJob, Any]]:
        """Explain the graphs of all jobs, whose wishes are equal, in one call; each comes as soon as it is drawn, or as
        the exception for a job at fault, which costs no other. ``data``: the file that the only job names."""
        read: dict[ExplainJob, Graphs] = {}
        for job in jobs:
            try:
                lines, file = job.lines, job.file
                read[job] = self.read_lines(lines, job.first) if file is None else self.read_file(file, data)
            except Exception as error:
                yield job, error
        if not read:
            return
        answers = self._answers(Graphs.concat(list(read.values())), next(iter(read)))
        for job, graphs in read.items():
            found = [] if job.report else list(islice(answers, len(graphs)))
            for place, name, why in graphs.skipped:  # lines are counted from 0, rows of a file from 1
                where, at = (f"line {place + job.first}", place) if job.file is None else (f"row {place}", place - 1)
                found.insert(at, {"name": name, "error": f"{where}: {why}"})
            yield job, self._report(graphs, job) if job.report else found

    def _answers(self, graphs: Graphs, job: ExplainJob) -> Iterator[Plain]:
        """Explain graphs as the job wishes."""
        names = self.predictor.targets
        target, classes = ("", self.predictor.class_names) if not names else (job.target or names[0], ())
        structures = self._explain(graphs, job)
        # of the two classes of a single target the other has the rest: this saves a pass over the graphs
        told = self._predicted(graphs) if names or len(classes) > 2 else None
        for g, structure in enumerate(structures):
            p = structure.probability or 0.0
            shares = _shares(classes, [p if name == structure.predicted else 1 - p for name in classes])
            if told is not None:
                shares = next(one["probabilities"] for one in told[g] if one["name"] == target)
            of_all = {"target": target or None, "targets": told[g] if names and told else []}
            yield {**of_all, "probabilities": shares, **self._plain(structure, job.picture)}

    def _report(self, graphs: Graphs, job: ExplainJob) -> str:
        """One self-contained HTML page about these graphs."""
        structures, target = self._explain(graphs, job), self.predictor.target_name(job.target)
        classes = self.predictor.of_target(job.target).class_names
        data = "SMILES typed in" if job.file is None else PurePath(job.file).name
        data += f" without {len(graphs.skipped)} that cannot be read" if graphs.skipped else ""
        summary = summarise(structures, model=self.name, data=data, class_names=classes, target=target)
        return page(encode(structures, summary))

    def _explain(self, graphs: Graphs, job: ExplainJob) -> list[CriticalStructure]:
        wishes: Plain = {"classes": job.explained, "target": job.target, "fidelity": job.fidelity}
        return explain(self.predictor, graphs, device=self.device, **wishes)

    def _predicted(self, graphs: Graphs) -> list[list[Plain]]:
        """For every graph what is predicted of each target; one alone is called ''"""
        found: list[list[Plain]] = [[] for _ in range(len(graphs))]
        for name, one, predicted, spread in self.predictor.by_target(graphs, device=self.device):
            truth = graphs.of_target(name) if name else graphs
            for g, row in enumerate(predicted.tolist()):
                shares = _shares(one.class_names, row) if one.class_names else []
                best = max(shares, key=itemgetter("probability"), default={"name": row, "probability": None})
                answer = {"name": name, "predicted": best["name"], "probability": best["probability"]}
                answer |= {"spread": None if spread is None else float(spread[g]), "true": truth.target_of(g)}
                found[g].append({**answer, "probabilities": shares})
        return found

    def _plain(self, structure: CriticalStructure, picture: bool) -> Plain:
        graph, known = structure.graph, self.predictor.encoder
        plain, labels = structure.to_plain(), list(graph.node_label or ())
        firsts = {label.partition(SEPARATOR)[0] for label in labels}
        unseen = firsts - set(known.node_label_names) if known.node_label_names else set()
        copied = ("name", "predicted", "probability", "spread", "true", "technique", "base", "for", "against", "output")
        parts = ("node_importance", "edge_importance", "critical_nodes", "critical_edges", "fidelity")
        return {name: plain[name] for name in (*copied, *parts)} | {
            "balance": wording.balance(structure),
            "evidence": wording.evidence(structure),
            "nothing": None if len(structure.critical_nodes) else structure.nothing,
            "smiles": graph.smiles,
            "explained": plain["class"],
            "node_labels": labels,
            "unseen_labels": sorted(unseen),
            "svg": structure.draw() if picture and graph.n_nodes <= settings.MOST_DRAWN else None,
        }


def _shares(names: Sequence[str], row: Sequence[float]) -> list[Plain]:
    return [{"name": name, "probability": probability} for name, probability in zip(names, row, strict=True)]


def _task(known: Encoder | TargetScale) -> str:
    return "classification" if known.class_names else "regression"
