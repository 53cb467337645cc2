"""Every setting in one place, torch-free so that ``--help`` is quick: frozen records, checked once. The text beside
or under a field is its meaning; the command line shows the same text as help."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from egocnn.errors import ConfigError

Task = Literal["auto", "classification", "regression"]
Salts = Literal["keep", "largest"]
Embedding = Literal["patchy-san", "attributes"]
Readout = Literal["max", "mean", "sum", "log", "mean+max", "log+max", "sum+max", "mean+log+max", "sort"]
Schedule = Literal["cosine", "constant"]
CLASS_SCORES = ("accuracy", "log_loss", "roc_auc", "average_precision", "mcc", "balanced_accuracy")
VALUE_SCORES = ("r2", "rmse", "mae", "spearman")
SCORES = CLASS_SCORES + VALUE_SCORES
LOWER_IS_BETTER = ("loss", "log_loss", "rmse", "mae")
Monitor = Literal[
    "auto", "loss", "accuracy", "log_loss", "roc_auc", "average_precision", "mcc", "balanced_accuracy",
    "r2", "rmse", "mae", "spearman",
]  # fmt: skip
Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "float32", "bfloat16"]
Technique = Literal["contributions", "relevance", "paper", "grad-cam", "gradient", "integrated-gradients", "occlusion"]
Selection = Literal["connected", "threshold", "top", "smallest"]
Auto = Literal["auto"]
ALL = "all"  # the target that stands for all columns of a table that could be one
IF_THERE = "…"  # the last of the names of several targets where those that a source does not have do not count

LARGEST = 1e30  # Of a learning rate and the like: what it is multiplied by must fit into 32 bits, too.

KINDS: dict[str, tuple[Any, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "true or false"),
    "str | None": ((str, NoneType), "a name"),
    "int | None": ((Integral, NoneType), "a whole number"),
}
"""What a field of each type may hold, and how to say so."""
COUNTS = "slots k width depth sort_nodes hidden networks epochs batch_size patience judgements top steps runs restarts"
POSITIVE = "megabytes seconds work_seconds receive_seconds worker_gigabytes"
RANGES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    (f"{COUNTS} workers waiting connections", lambda value: value >= 1, "at least 1"),
    ("runs restarts networks", lambda value: value <= 1000, "at most 1000"),
    ("folds", lambda value: value >= 2, "at least 2"),
    (POSITIVE, lambda value: 0 < value <= 1e9, "above 0 and at most 1e9"),
    ("port", lambda value: 0 <= value < 1 << 16, "0 to 65535"),
    ("limit jobs sample", lambda value: value is None or value >= 1, "at least 1"),
    ("pool_limit seed weight_decay gamma against figures", lambda value: value >= 0, "at least 0"),
    ("pool_limit weight_decay gamma against", lambda value: value <= LARGEST, f"at most {LARGEST:g}"),
    ("slots k sort_nodes", lambda value: value <= 10**6, "at most 1000000"),
    (f"{COUNTS} seed", lambda value: value < 2**63, "below 2^63"),
    ("dropout pool_dropout test", lambda value: 0 <= value < 1, "at least 0 and below 1"),
    ("validation", lambda value: 0 < value < 1, "between 0 and 1"),
    ("parts missing evidence largest threshold attention_threshold", lambda value: 0 <= value <= 1, "between 0 and 1"),
    ("learning_rate", lambda value: 0 < value <= LARGEST, f"above 0 and at most {LARGEST:g}"),
    ("tie", lambda value: isinstance(value, bool) or value == "auto", "true, false or auto"),
)
"""Fields, what their values must obey (NaN obeys none of it), and how to say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConfig:
    """How to read a source of graphs."""

    smiles: str | None = None  #: Column with SMILES (a CSV; default: the column called smiles).
    target: str | None = None
    """Column or field to predict, or several: A,B,C, or all that could be (default: that called target, label, class
    or y)."""
    name: str | None = None
    """Column or field with the graphs' names (default: the one called name or id, else row numbers)."""
    split: str | None = None
    """Column or field that says train, validation or test; COLUMN=test reads that part alone. Without such a column:
    random or scaffold (Bemis-Murcko, the largest groups train) draws 80, 10 and 10 per cent."""
    group: str | None = None  #: Column or field whose equal values never stand on both sides of a split.
    node_label: str | None = None  #: networkx, GraphML, GEXF: node data that is the label (default: label).
    node_attributes: str | None = None  #: The same with numbers, or several: A,B,C (default: attr, or a list x).
    edge_label: str | None = None  #: The same of edges (default: the one called label).
    edge_weight: str | None = None  #: The same with the weight of edges (default: the one called weight).
    task: Task = "auto"  #: Predict a class or a number (auto: words and few whole numbers are classes).
    hydrogens: bool = False  #: Make the hydrogen atoms of SMILES nodes of the graph.
    salts: Salts = "keep"
    """Of molecules in several parts, read all, or only the part with the most heavy atoms: no salt, no water."""
    skip_invalid: bool = False
    """Leave out rows that do not parse, however many (else: up to 5% of the rows of a file)."""
    strict: bool = False  #: Stop at the first row that does not parse.

    def __post_init__(self) -> None:
        for name in ("target", "node_attributes"):
            if isinstance(several := getattr(self, name), (list, tuple)):  # the names of several, as Python has them
                object.__setattr__(self, name, ",".join(map(str, several)))
        check_fields(self)
        if self.strict and self.skip_invalid:
            raise ConfigError("strict and skip_invalid exclude each other: rows that do not parse stop or are left out")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The network: node embedding, ego-convolutions, readout, dense head."""

    embedding: Embedding = "patchy-san"  #: First layer: labelled neighbourhoods, or the nodes' own attributes.
    slots: int = 10  #: Nodes that Patchy-San reads around each node, the node itself counted (P).
    k: int = 16  #: Ranked neighbours read per node, the node itself not counted (K).
    width: int = 128  #: Filters per layer (D).
    depth: int = 3  #: Ego-convolution layers (L): a prediction sees this many hops around every node.
    tie: bool | Auto = False
    """One filter bank shared by all layers, the scale-free prior; auto: if the training graphs are scale-free."""
    readout: Readout = "mean+log+max"
    """From node embeddings to one vector per graph; log is that of 1 + the sum: counts on all scales."""
    jump: bool = True
    """Read out every layer, the embedding included, instead of the deepest alone (jumping knowledge)."""
    count_inputs: bool = True
    """Read out labels and attributes as they are, too: how many nodes have each label, or a value in each bin."""
    sort_nodes: int = 64  #: Nodes that the sort readout keeps per graph.
    hidden: int = 128  #: Neurons of the dense layer before the output.
    head_norm: bool = True
    """Batch normalisation in the dense layer: sums over graphs of many sizes are of many sizes, too."""
    pool_norm: bool = True
    """Batch normalisation of the graph's vector: counts, means and maxima are of different sizes."""
    pool_limit: float = 3.0
    """With pool_norm: standard deviations beyond which a number of the graph's vector is taken for no larger; 0: none.
    Graphs larger than all that were trained on then differ from them in what they hold, not in how much."""
    pool_dropout: float = 0.5  #: Share of the graph's vector dropped between readout and dense layer.
    dropout: float = 0.0  #: Share of activations dropped after the embedding, every ego layer and the dense layer.
    degrees: bool = True
    """Where nodes have no labels: take the number of their neighbours for one, and attributes from those around."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How the networks are trained."""

    networks: int = 3
    """Networks of one model, trained from seeds of their own (R): their mean predicts, their spread is its doubt."""
    epochs: int = 50  #: Passes over the training part at most.
    batch_size: int = 32  #: Graphs per step.
    learning_rate: float = 1e-3  #: Step size of AdamW at its highest.
    weight_decay: float = 1e-4  #: Pull of the weights towards zero.
    schedule: Schedule = "cosine"  #: Learning rate over the epochs: falling to zero after a short rise, or constant.
    patience: int = 20  #: Stop after this many epochs without a noticeably better validation score.
    judgements: int = 80
    """Graphs that must speak for the best epoch: a smaller validation part is averaged over several epochs."""
    monitor: Monitor = "auto"
    """Score that chooses the best epoch, of equals the lower loss; of several targets its mean (auto: accuracy or R²;
    ROC AUC where one class has more than two thirds of the training graphs; the loss of several targets)."""
    validation: float = 0.1
    """Share of the training part that chooses the best epoch, where the data has no validation part."""
    parts: float = 0.3
    """Share of the graphs that a step shows with nodes missing: the network learns what a part of a graph says."""
    missing: float = 1.0  #: Of such a graph at most this share of the nodes is missing.
    class_weights: bool = False  #: Weigh classes by the inverse of their frequency in the loss.
    precision: Precision = "auto"  #: Arithmetic of the matrix products (auto: bfloat16 on a GPU, float32 on a CPU).
    seed: int = 0  #: Every random choice follows from it.
    device: Device = "auto"  #: Where to compute (auto: the GPU if there is one).

    def __post_init__(self) -> None:
        check_fields(self)

    def window(self, validation: int) -> int:
        """Epochs whose mean score the best one is chosen by, where so many graphs validate."""
        return -(-self.judgements // max(validation, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainConfig:
    """How to find critical structures."""

    technique: Technique = "contributions"
    """How importance is found: ours, which adds up to the output, the paper's attention, or a general one."""
    select: Selection = "connected"
    """Critical nodes: the smallest connected part that holds the evidence, or all above a threshold, the first few, or
    the fewest that keep the prediction."""
    evidence: float = 0.85
    """With select=connected: share of the evidence, output less base, that the part must keep alone before what
    contributes little is taken off it."""
    largest: float = 0.5
    """With select=connected: share of the nodes that a part may have; where it takes more, nothing stands out."""
    threshold: float = 0.25  #: With select=threshold: share of the largest importance that a critical node must reach.
    top: int = 5  #: With select=top: how many nodes.
    gamma: float = 1.0
    """Relevance: how much contributions that speak for a unit are favoured over those that speak against it."""
    against: float = 0.1  #: Relevance: weight of the evidence against the class beside that for it.
    attention_threshold: float = 0.8
    """Paper, Grad-CAM: share of the largest attention that a neighbourhood must reach to be traced back."""
    steps: int = 3  #: Contributions and integrated gradients: points on the way from the empty graph to the whole one.

    def __post_init__(self) -> None:
        check_fields(self)


def field_help(config: type[Any]) -> dict[str, str]:
    """The meaning of every field, read from the source of the class: the text under it, or the comment beside it."""
    source = textwrap.dedent(inspect.getsource(config))
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    meaning, lines = {}, source.splitlines()
    for each, after in zip(definition.body, [*definition.body[1:], None], strict=True):
        match each, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                meaning[name] = " ".join(text.split())
            case ast.AnnAssign(target=ast.Name(id=name), end_lineno=int(line)), _ if "  #" in lines[line - 1]:
                meaning[name] = lines[line - 1].split("  #", 1)[1].lstrip(": ")  # Sphinx reads what begins with #:
    return meaning


def check_fields(config: Any) -> None:
    """A field holds a value of its type, one of those that its type lists, and in its range."""
    for field in fields(config):
        check_value(field.name, getattr(config, field.name), field.type)


def check_value(name: str, value: Any, annotation: Any = "int") -> None:
    """The same of one value, of a setting or an argument that is called as a field of this type is."""
    kind_name = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    declared = globals().get(kind_name, annotation)
    choices = get_args(declared) if get_origin(declared) is Literal else ()
    if choices and not (isinstance(value, str) and value in choices):
        raise ConfigError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    kind, words = KINDS.get(kind_name, (object, ""))
    if not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object)):
        raise ConfigError(f"{name} must be {words}, got {value!r}")
    for names, holds, words in RANGES:
        if name in names.split() and not holds(value):
            raise ConfigError(f"{name} must be {words}, got {repr(value) if isinstance(value, str) else value}")


def split_names(text: str | None) -> list[str]:
    """A,B -> the names A and B; a column with a comma in its name can be named alone."""
    return [] if text is None else [name.strip() for name in text.split(",")]


PresetName = Literal["default", "paper"]
PRESET_NAMES: tuple[PresetName, ...] = get_args(PresetName)

PLAIN: dict[str, Any] = {
    **dict.fromkeys(("jump", "count_inputs", "head_norm", "pool_norm", "degrees"), False),
    **dict.fromkeys(("pool_limit", "pool_dropout"), 0.0),
}
"""The network of the paper: its deepest layer alone is read out, into a head without norms."""
STEADY: dict[str, Any] = {"learning_rate": 1e-4, "weight_decay": 0.0, "schedule": "constant"}


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings of network and training under one name."""

    model: ModelConfig
    train: TrainConfig

    def options(self) -> dict[str, Any]:
        """Its fields by name, as the command line has them."""
        return {**asdict(self.model), **asdict(self.train)}


PRESETS: dict[PresetName, Preset] = {
    # what predicts best and points best; docs/reproduce.md has the searches that it comes from
    "default": Preset(ModelConfig(), TrainConfig()),
    # batch and patience as in the authors' code, which does not bound the epochs; their flatten sees the order of the
    # nodes, ours, "sort", keeps the 64 ranked first
    "paper": Preset(
        ModelConfig(depth=5, readout="sort", dropout=0.5, **PLAIN),
        TrainConfig(**STEADY, batch_size=10, epochs=100, patience=10, judgements=1, parts=0.0, networks=1),
    ),
}
