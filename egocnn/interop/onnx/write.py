"""A trained model -> an ONNX file that says of itself what it reads, compared with the model before it is there."""

import json
import logging
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from egocnn import __version__
from egocnn.data.graphs import Graphs
from egocnn.data.sources.text import optional
from egocnn.encode.degrees import PROFILE
from egocnn.errors import ConfigError, EgoCNNError, MissingExtraError
from egocnn.files import replacing
from egocnn.interop.onnx.plain import PlainNetwork, inputs_for, inputs_of
from egocnn.model import Model

TOLERANCE = 1e-4  # Largest difference of file and model, beside the largest output or 1: rounding stays far below it.
LARGEST = 2**31 - 2**20  # Bytes of a file: its format counts them in 31 bits.
SIZES = (0, 1, 2, 5, 9, 14, 22)  # Nodes of the trial graphs; one more has a hub with more neighbours than are ranked.
EDGES_PER_NODE = 2
HOW = (
    "egocnn.interop.onnx.inputs_for(egocnn.model.Model.load(RUN), graphs) makes the arrays; nodes are numbered from "
    "0 through all graphs of a call; egocnn/encode/ranking.py and egocnn/encode/patches.py say how neighbours and "
    "entries are found"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written, and how it was checked."""

    file: str  # where to
    bytes: int  # its size
    opset: int  # the version of ONNX's operators that it needs
    inputs: tuple[str, ...]  # arrays that it reads, by name
    outputs: tuple[str, ...]  # arrays that it answers, by name
    graphs: int  # random graphs on which file and model were compared; 0 where onnxruntime is not installed
    largest_difference: float | None  # between logits, or standardised values, of both; None: not compared

    def __str__(self) -> str:
        size = f"{self.bytes / 1e6:.1f} MB" if self.bytes >= 1e5 else f"{self.bytes / 1e3:.1f} kB"
        if self.largest_difference is None:
            checked = "not compared with the model: onnxruntime is not installed"
        else:
            most = f"{self.largest_difference:.1e} at most on {self.graphs} random graphs"
            checked = f"onnxruntime and the model differ by {most}"
        return f"{self.file}: {size}, opset {self.opset}; {checked}"


def export_onnx(predictor: Model, path: str | Path, *, seed: int = 0) -> Exported:
    """Write a model as an ONNX file, once onnx accepts it and onnxruntime, where installed, computes the same.

    Arguments:
        predictor: What a fitted estimator holds as ``model_``.
        path: A file that ends in ``.onnx``.
        seed: Which random graphs the file and the model are compared on.

    Returns:
        What was written, and by how much the two differ.

    Raises:
        ConfigError: the model cannot be exported, or not to this place.
        EgoCNNError: the file does not compute what the model does; nothing is written.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2).fit(graphs)
        >>> from egocnn.interop.onnx import export_onnx
        >>> export_onnx(model.model_, "alcohols.onnx").outputs
        ('logits', 'probabilities', 'spread')"""
    path = Path(path)
    if path.suffix.lower() != ".onnx" or (path.exists() and not path.is_file()):
        raise ConfigError(f"{path}: name a file that ends in .onnx")
    onnx, _ = optional("onnx", "export"), optional("onnxscript", "export")
    network = PlainNetwork(predictor)
    if sum(each.numel() * each.element_size() for each in network.parameters()) > LARGEST:
        raise ConfigError("this model takes more than 2 GB, which one ONNX file cannot hold")
    written = _convert(predictor, network, seed)
    with replacing(path) as temporary:
        temporary.write_bytes(written.SerializeToString())
        stored = temporary.read_bytes()
        try:
            onnx.checker.check_model(stored, full_check=True)
        except onnx.checker.ValidationError as error:
            raise EgoCNNError(f"{path}: does not pass onnx's check ({str(error).splitlines()[0]})") from None
        compared = _compare(predictor, stored, seed)
    opset = next(each.version for each in written.opset_import if each.domain == "")
    arrays: dict[str, Any] = {"inputs": network.names, "outputs": network.answers}
    return Exported(file=str(path), bytes=len(stored), opset=opset, **arrays, **compared)


def metadata(predictor: Model) -> dict[str, Any]:
    """What the file says of itself under the key ``egocnn``, as JSON: all that stands between numbers and names."""
    ours = predictor.encoder
    return {
        "version": __version__,
        "task": "several targets" if ours.targets_of else "classification" if ours.class_names else "regression",
        "targets": [asdict(each) for each in ours.targets_of],
        **{name: getattr(ours, name) for name in ("class_names", "node_label_names", "edge_label_names")},
        "nodes_described_by_degree": ours.by_degree,
        "attr_mean": ours.attr_mean.tolist(),
        "attr_scale": ours.attr_scale.tolist(),
        "networks": len(predictor.networks),
        **{name: getattr(predictor, name) for name in ("temperature", "noise", "spread_scale")},
        **{name: getattr(ours, name) for name in ("target_mean", "target_scale")},
        "model": asdict(predictor.config),
        "inputs": {each.name: {"axes": each.axes, "meaning": each.meaning} for each in inputs_of(predictor)},
        "how": HOW,
    }


def _convert(predictor: Model, network: PlainNetwork, seed: int) -> Any:
    arrays = inputs_for(predictor, trial_graphs(predictor, weights=True, seed=seed))
    words = [{n: axis for n, axis in enumerate(each.axes) if isinstance(axis, str)} for each in inputs_of(predictor)]
    sizes = {word: torch.export.Dim(word) for each in words for word in each.values()}
    dynamic = tuple({n: sizes[word] for n, word in each.items()} for each in words)
    examples = tuple(torch.from_numpy(arrays[name]) for name in network.names)
    named: dict[str, Any] = {"input_names": network.names, "output_names": network.answers}
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)  # without torch's remarks on libraries that are not there and on its own future
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            how: dict[str, Any] = {"dynamo": True, "dynamic_shapes": (dynamic,), "verbose": False}
            program = torch.onnx.export(network.eval(), examples, **named, **how)
    finally:
        log.setLevel(level)
    assert program is not None
    written: Any = program.model_proto
    graph = written.graph
    # without the lines of source, and so the folders of this machine, that torch notes beside every operation
    for part in (written, graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    written.producer_name, written.producer_version = "egocnn", __version__
    entry = written.metadata_props.add()
    entry.key, entry.value = "egocnn", json.dumps(metadata(predictor), allow_nan=False)
    return written


def trial_graphs(predictor: Model, *, weights: bool, seed: int) -> Graphs:
    """Random graphs with the labels and attributes that the model knows, and some it does not"""
    random, known = np.random.default_rng(seed), predictor.encoder
    counts = np.array([*SIZES, predictor.config.k + 4])
    n_nodes, hub = int(counts.sum()), int(counts[:-1].sum())
    graph_of = np.repeat(np.arange(len(counts)), counts * EDGES_PER_NODE)
    within = (random.random((len(graph_of), 2)) * counts[graph_of, None]).astype(np.int64)
    star = np.stack([np.full(n_nodes - hub - 1, hub), np.arange(hub + 1, n_nodes)], axis=1)
    pairs = np.concatenate([(np.cumsum(counts) - counts)[graph_of, None] + within, star])
    edges = np.unique(np.sort(pairs, axis=1), axis=0)
    columns: dict[str, Any] = {}
    node_labels = () if known.by_degree else known.node_label_names
    several = (("node_label", node_labels, n_nodes), ("edge_label", known.edge_label_names, len(edges)))
    for kind, names, size in several:
        if names:
            columns |= {kind: random.integers(-1, len(names), size, np.int32), f"{kind}_names": names}
    if own := len(known.attr_mean) - (PROFILE if known.by_degree else 0):
        drawn = known.attr_mean[:own] + known.attr_scale[:own] * random.standard_normal((n_nodes, own))
        columns["node_attr"] = drawn.astype(np.float32)
    if weights:
        columns["edge_weight"] = random.uniform(0.5, 2, len(edges)).astype(np.float32)
    return Graphs.from_edges(node_counts=counts, edges=edges, **columns)


def _compare(predictor: Model, stored: bytes, seed: int) -> dict[str, Any]:
    """How many random graphs the file and the model were compared on, and by how much they differ"""
    try:
        runtime = optional("onnxruntime", "export")
    except MissingExtraError:
        return {"graphs": 0, "largest_difference": None}
    session = runtime.InferenceSession(stored, providers=["CPUExecutionProvider"])
    trials = [trial_graphs(predictor, weights=weights, seed=seed + 1) for weights in (False, True)]
    ours = np.concatenate([predictor.outputs(graphs, device="cpu") for graphs in trials])
    found = (session.run(None, inputs_for(predictor, graphs)) for graphs in trials)
    step = 2 if len(predictor.networks) == 1 else 3  # answers a target, the outputs first
    theirs = np.concatenate([np.concatenate(answers[::step], axis=1) for answers in found])
    difference = float(np.abs(ours - theirs).max())
    if not difference <= TOLERANCE * max(1.0, float(np.abs(ours).max())):  # so that NaN is refused too
        raise EgoCNNError(f"nothing is written: onnxruntime and the model differ by {difference:.1e}")
    return {"graphs": len(ours), "largest_difference": difference}
