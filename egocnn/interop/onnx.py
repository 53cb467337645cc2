"""A trained model -> an ONNX file that is compared with the model before it is there; graphs -> what the file reads.
A network is the one that trains and predicts; below its layers, embedding-bags, segments and custom operators become
gathers, matrix products and scatters."""

import copy
import json
import logging
import warnings
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from egocnn import __version__
from egocnn.config import check_value
from egocnn.data.graphs import Graphs
from egocnn.data.sources.text import optional
from egocnn.encode.degrees import PROFILE
from egocnn.encode.encoder import TargetScale
from egocnn.errors import ConfigError, EgoCNNError, MissingExtraError
from egocnn.files import replacing
from egocnn.model import FITTED, Model, model_of
from egocnn.nn import Output
from egocnn.nn.batch import Bags, Batch
from egocnn.nn.embed import PatchShape
from egocnn.nn.engines import Neighbours
from egocnn.show.streaming import read_as_trained

__all__ = ["Exported", "Input", "PlainNetwork", "export_onnx", "inputs_for", "inputs_of"]

WHERE = {"neighbours": "neighbours.table", "entry_row": "bags.rows", "entry_node": "bags.owner", "position": "place"}
"""of the batch, for inputs that are not named as there"""
TOLERANCE = 1e-4  # Largest difference of file and model, beside the largest output or 1: rounding stays far below it.
LARGEST = 2**31 - 2**20  # Bytes of a file: its format counts them in 31 bits.
SIZES = (0, 1, 2, 5, 9, 14, 22)  # Nodes of the trial graphs; one more has a hub with more neighbours than are ranked.
EDGES_PER_NODE = 2
HOW = (
    "egocnn.interop.onnx.inputs_for(egocnn.model.Model.load(RUN), graphs) makes the arrays; nodes are numbered from "
    "0 through all graphs of a call; egocnn/encode/ranking.py and egocnn/encode/patches.py say how neighbours and "
    "entries are found"
)


@dataclass(frozen=True, slots=True)
class Input:
    """One array: its name, what its axes count, the type of its numbers, and what they say."""

    name: str  # as in the file
    axes: tuple[str | int, ...]  # a word for what may be of any length, a number for what the model fixes
    kind: Literal["int64", "float32"]  # the type of its numbers
    meaning: str  # what they say


def inputs_of(predictor: Model) -> tuple[Input, ...]:
    """The arrays that an exported model reads; a setting that reads no array asks for none.

    Arguments:
        predictor: What a fitted estimator holds as ``model_``.

    Returns:
        One record per array, in order.

    Raises:
        ConfigError: the model has an embedding module of its author's own.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2).fit(graphs)
        >>> from egocnn.interop.onnx import inputs_of
        >>> [each.name for each in inputs_of(model.model_)][:2]
        ['neighbours', 'entry_row']"""
    predictor = model_of(predictor)
    if predictor.custom_embedding:
        raise ConfigError("this model reads nodes through a module of its author, which has no form in ONNX")
    config = predictor.config
    K, A = config.k, len(predictor.encoder.attr_mean)
    found = [Input("neighbours", ("nodes", K), "int64", "ranked neighbours of every node; -1 where absent")]
    if config.embedding == "patchy-san":
        found += [
            Input("entry_row", ("entries",), "int64", "row of Patchy-San's table, one for each entry of each patch"),
            Input("entry_node", ("entries",), "int64", "node around which the entry was found, ascending"),
            Input("entry_weight", ("entries",), "float32", "weight of the edge that the entry stands for; else 1"),
        ]
    if A:
        found.append(Input("attributes", ("nodes", A), "float32", "(attribute - attr_mean) / attr_scale"))
    if predictor.networks[0].counted:
        found.append(Input("node_label", ("nodes",), "int64", "number of the node's label; -1: unknown"))
    if config.readout == "sort":
        found.append(Input("position", ("nodes",), "int64", "rank of the node among the nodes of its graph, from 0"))
    return (
        *found,
        Input("graph_of", ("nodes",), "int64", "number of the graph that each node belongs to, ascending"),
        Input("node_counts", ("graphs",), "int64", "nodes of every graph"),
    )


def inputs_for(predictor: Any, graphs: Any) -> dict[str, NDArray[Any]]:
    """What an exported model reads of these graphs: ``session.run(None, inputs_for(predictor, graphs))``.

    Everything before the network happens here: labels are counted by the names of the training graphs, neighbours
    ranked by their colours, attributes standardised. Nodes are numbered through all graphs.

    Arguments:
        predictor: The model that was exported, or the estimator that holds it.
        graphs: Graphs to predict: anything that :func:`egocnn.read` takes.

    Returns:
        Arrays by name.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from egocnn.interop.onnx import inputs_for
        >>> inputs_for(model.model_, graphs[:2])["neighbours"].shape
        (23, 16)"""
    predictor = model_of(predictor)
    graphs = read_as_trained(graphs, predictor)
    batch = predictor.encode(graphs).batch(torch.arange(len(graphs)))
    return {each.name: _array(batch, each) for each in inputs_of(predictor)}


def _array(batch: Batch, wanted: Input) -> NDArray[Any]:
    if wanted.name == "entry_weight":
        values = torch.ones(len(batch.bags.rows)) if batch.bags.weight is None else batch.bags.weight
    else:
        values = attrgetter(WHERE.get(wanted.name, wanted.name))(batch)
    if len(wanted.axes) == 2:
        values = values[:, : wanted.axes[1]]  # a batch may bring more neighbours, for Patchy-San, than layers read
    return values.numpy().astype(wanted.kind)


class PlainNetwork(nn.Module):
    """A trained model as a function of plain tensors, which is what becomes an ONNX file.

    A classifier answers with logits (B, C) and calibrated probabilities (B, C), a regressor with the standardised
    value (B, 1) and the value in the unit of its target (B): the mean over the networks. Where there are several, the
    last answer is their ``spread`` (B), as :meth:`egocnn.model.Model.spread` has it. Of several targets these are the
    answers for each, after its name: ``toxic.probabilities``.

    Arguments:
        predictor: What a fitted estimator holds as ``model_``.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2).fit(graphs)
        >>> from egocnn.interop.onnx import PlainNetwork
        >>> PlainNetwork(model.model_).answers
        ('logits', 'probabilities', 'spread')"""

    def __init__(self, predictor: Model) -> None:
        super().__init__()
        self.names = tuple(each.name for each in inputs_of(predictor))
        known, fitted = predictor.encoder, {name: getattr(predictor, name) for name in FITTED}
        one = TargetScale("", known.class_names, known.target_mean, known.target_scale, **fitted)
        self.targets = known.targets_of or (one,)
        self.answers: tuple[str, ...] = ()
        for one in self.targets:
            own = ["logits", "probabilities"] if one.class_names else ["standardised", "value"]
            own += ["spread"] if len(predictor.networks) > 1 else []
            self.answers += tuple(f"{one.name}.{each}" if one.name else each for each in own)
        self.networks = nn.ModuleList(copy.deepcopy(predictor.networks)).cpu().float().eval()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Predict.

        Arguments:
            inputs: What :func:`egocnn.interop.onnx.inputs_of` lists, in that order.

        Returns:
            The answers named in ``answers``."""
        read, none = dict(zip(self.names, inputs, strict=True)), torch.zeros(0, dtype=torch.int64)
        neighbours = read["neighbours"]
        # what this model does not read is left empty
        bags = Bags(rows=read.get("entry_row", none), offsets=none, weight=read.get("entry_weight"))
        attributes = read.get("attributes", torch.zeros((neighbours.shape[0], 0)))
        columns: dict[str, Any] = {"place": read.get("position", none), "target": None}
        columns |= {name: read.get(name, none) for name in ("entry_node", "node_label", "graph_of", "node_counts")}
        batch = _PortableBatch(neighbours=Neighbours(neighbours), bags=bags, attributes=attributes, **columns)
        outputs: list[Output] = [network(batch) for network in self.networks]
        each = torch.stack([output.output for output in outputs])
        found: list[Tensor] = []
        widths = [len(one.class_names) or 1 for one in self.targets]
        for one, own in zip(self.targets, torch.split(each, widths, dim=2), strict=True):
            answer = own.mean(dim=0)
            value = answer[:, 0].double() * one.target_scale + one.target_mean
            found += [answer, torch.softmax(answer / one.temperature, dim=1) if one.class_names else value]
            found += [_spread(one, own, answer)] if len(outputs) > 1 else []
        return tuple(found)


def _spread(target: TargetScale, each: Tensor, mean: Tensor) -> Tensor:
    """(R, B, C), (B, C) -> (B)"""
    if not target.class_names:
        values = each[:, :, 0].double()
        variance = (values - values.mean(dim=0)).square().sum(dim=0) / (len(each) - 1)
        return (target.noise**2 + target.spread_scale**2 * variance).sqrt() * target.target_scale
    of_class = mean.argmax(dim=1, keepdim=True).expand(len(each), -1, -1)
    p = torch.softmax(each / target.temperature, dim=2).gather(2, of_class)[:, :, 0]
    return ((p - p.mean(dim=0)).square().sum(dim=0) / (len(each) - 1)).sqrt()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PortableBatch(Batch):
    """A batch whose sums are scatters."""

    entry_node: Tensor  # (S) the node around which each entry was read

    def patches(self, table: Tensor, attributes: Tensor, bias: Tensor, shape: PatchShape) -> Tensor:  # noqa: ARG002
        weight = self.bags.weight
        rows = table.index_select(0, self.bags.rows)
        rows = rows if weight is None else rows * weight[:, None]
        h = add_up(rows, self.entry_node, self.neighbours.table.shape[0])
        if attributes.shape[1]:
            h = h + self.slot_attributes(attributes)
        return h + bias

    def first_ranked(self, h: Tensor, nodes: int) -> Tensor:
        graphs = self.node_counts.shape[0]
        slot = torch.where(self.place < nodes, self.graph_of * nodes + self.place, graphs * nodes)
        return add_up(h, slot, graphs * nodes + 1)[:-1].reshape(-1, nodes * h.shape[1])  # the last row is thrown away


def add_up(rows: Tensor, owner: Tensor, size: int) -> Tensor:
    """(n, D), (n) -> (size, D)"""
    return rows.new_zeros(size, rows.shape[1]).scatter_add(0, owner[:, None].expand(-1, rows.shape[1]), rows)


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
    check_value("seed", seed)
    onnx, _ = optional("onnx", "export"), optional("onnxscript", "export")
    network = PlainNetwork(predictor := model_of(predictor))
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
