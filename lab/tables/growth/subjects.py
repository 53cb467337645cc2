"""Every system of Table 1 as a call to be timed: layers and nodes -> one training step, or one computation of features.

All work on the same two random graphs, one of each class, with four neighbours a node. What is done once per data set
(encoding, ranking, canonical labelling, cutting the batch) stands outside of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.errors import MissingExtraError
from egocnn.model import Model
from egocnn.train.engines.common import STEEPEST
from lab.rivals.kernels.embedded import WIDTH, WINDOW, Sentences, adjacent_words, texts_of_graphs
from lab.rivals.kernels.laplacian import LaplacianKernel
from lab.rivals.kernels.subtree import SubtreeKernel
from lab.rivals.kernels.words import Vocabulary, labelled, word_rounds
from lab.rivals.networks import convolutions, diffpool, recurrent
from lab.rivals.networks.encoding import Encoding, Shape
from lab.rivals.networks.layers import Network
from lab.rivals.networks.patchy import PatchySanNetwork, read_fields
from lab.rivals.networks.system import Design
from lab.tables.growth.claims import CLAIMS, Claim
from lab.tables.growth.curve import Work
from lab.tables.growth.spatial import SpatialConstruction
from lab.tables.growth.wide_fields import WideFields, read_wide_fields

LABELS = 4  # of nodes, drawn at random
CYCLES = 2  # through all nodes that make up a graph: twice as many neighbours a node


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthProblem:
    nodes: int  # of each of the two graphs
    layers: int
    seed: int
    device: torch.device

    def graphs(self) -> Graphs:
        """Random cycles through all nodes, laid over each other: connected, and what L edges reach grows as 3 to L."""
        random = np.random.default_rng([self.seed, self.nodes])
        edges = []
        for graph in range(2):
            for _ in range(CYCLES):
                cycle = random.permutation(self.nodes) + graph * self.nodes
                edges.append(np.stack([cycle, np.roll(cycle, 1)], axis=1))
        return Graphs.from_edges(
            node_counts=[self.nodes] * 2,
            edges=np.concatenate(edges),
            node_label=random.integers(LABELS, size=2 * self.nodes).astype(np.int32),
            node_label_names=tuple(f"label {number}" for number in range(LABELS)),
            target=np.arange(2),
            class_names=("one", "other"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthSubject:
    """A row of the table: what is claimed of it, and how to run it."""

    name: str
    claim: Claim | None  # None: the paper does not have it
    build: Callable[[GrowthProblem], Work]
    deepen: Callable[[GrowthProblem], Work] | None = None
    """how to run it with a growing number of layers, where that is another matter"""
    most_nodes: int | None = None
    """in the graphs while layers grow, where the common number of them would take all memory"""
    layers_are: str = "layers"  # what is counted as such
    remark: str  # what runs, and why it may grow otherwise than claimed


class NetworkBuilder(Protocol):
    def __call__(self, shape: Shape, *, layers: int) -> Network: ...


# ── networks: one training step ───────────────────────────────────────────────────────────────────


def training_step(network: nn.Module, loss: Callable[[], Tensor]) -> Work:
    """Forward, backward, clipping and update, as in training."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    network.train()

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss())
        torch.nn.utils.clip_grad_norm_(network.parameters(), STEEPEST)
        optimizer.step()

    return step


def _step(problem: GrowthProblem, design: Design) -> Work:
    graphs = problem.graphs()
    encoded = Encoding.fit(graphs).encode(graphs)
    shape = Shape.of(encoded)
    network = design.build(shape).to(problem.device)
    network.check_size(shape.most_nodes, len(encoded), problem.device)
    batch = design.read(encoded, shape).cut(np.arange(len(encoded)), problem.device)
    target = torch.arange(len(encoded), device=problem.device)
    return training_step(network, lambda: network.loss(batch, target))


def _network(builder: NetworkBuilder) -> Callable[[GrowthProblem], Work]:
    return lambda problem: _step(problem, Design(lambda shape: builder(shape, layers=problem.layers)))


def _spatial(problem: GrowthProblem) -> Work:
    return _step(problem, Design(lambda shape: SpatialConstruction(shape, layers=problem.layers)))


def _patchy(problem: GrowthProblem) -> Work:
    return _step(problem, Design(PatchySanNetwork, read=read_fields))


def _wide_patchy(problem: GrowthProblem) -> Work:
    hops = problem.layers
    slots = field_size(hops)
    return _step(
        problem,
        Design(
            lambda shape: WideFields(shape, slots=slots),
            read=lambda encoded, shape: read_wide_fields(encoded, shape, slots=slots, hops=hops),
        ),
    )


def field_size(hops: int) -> int:
    """The most nodes within so many edges of a node, itself counted: every node has four neighbours."""
    neighbours = 2 * CYCLES
    return 1 + neighbours * sum(int((neighbours - 1) ** hop) for hop in range(hops))


def _ego(problem: GrowthProblem) -> Work:
    config = ModelConfig(depth=problem.layers)
    graphs = problem.graphs()
    predictor = Model.build(config, Encoder.fit(graphs, config))
    network = predictor.networks[0].to(problem.device)
    batch = predictor.encode(graphs).to(problem.device).batch(torch.arange(len(graphs), device=problem.device))
    target = batch.target
    assert target is not None
    return training_step(network, lambda: F.cross_entropy(network(batch).output, target))


# ── kernels: features of both graphs, and their kernel ────────────────────────────────────────────


def _kernel(make: Callable[[GrowthProblem], Any]) -> Callable[[GrowthProblem], Work]:
    def build(problem: GrowthProblem) -> Work:
        graphs = problem.graphs()

        def describe_and_compare() -> None:
            kernel = make(problem)
            for described in kernel.fit(graphs):
                kernel.compare(described, described)

        return describe_and_compare

    return build


def _embedded(sentences: Callable[..., Sentences], window: int) -> Callable[[GrowthProblem], Work]:
    """One reading of the text: a fit reads small texts more often, which would hide how time grows with their size."""

    def build(problem: GrowthProblem) -> Work:
        try:
            from gensim.models import Word2Vec
        except ImportError:
            raise MissingExtraError("gensim", "baselines") from None
        graphs = labelled(problem.graphs())

        def read_once() -> None:
            words = word_rounds(graphs, problem.layers)
            vocabulary = Vocabulary.of(words)
            text = [vocabulary.positions(of_round) for of_round in words]
            read = sentences(text, graphs, np.random.default_rng(problem.seed))
            model = Word2Vec(
                vector_size=WIDTH, window=window, sg=1, min_count=1, workers=1, seed=problem.seed, shrink_windows=False
            )
            model.build_vocab(read)
            model.train(read, total_examples=model.corpus_count, epochs=1)

        return read_once

    return build


# ── the rows ──────────────────────────────────────────────────────────────────────────────────────

ONE_READING = "; words are counted and their text is read once, so that small graphs are not read more often"


def _subject(name: str, build: Callable[[GrowthProblem], Work], remark: str, **more: Any) -> GrowthSubject:
    return GrowthSubject(name=name, claim=CLAIMS.get(name), build=build, remark=remark, **more)


SUBJECTS: tuple[GrowthSubject, ...] = (
    _subject(
        "WL kernel",
        _kernel(lambda problem: SubtreeKernel(rounds=[problem.layers])),
        "counts of subtrees and their product",
        layers_are="rounds",
    ),
    _subject(
        "DGK",
        _embedded(texts_of_graphs, WINDOW),
        f"embeddings of subtrees{ONE_READING}",
        layers_are="rounds of subtrees",
    ),
    _subject(
        "Subgraph2vec",
        _embedded(adjacent_words, 1),
        f"embeddings of subtrees by those of adjacent nodes{ONE_READING}",
        layers_are="rounds of subtrees",
    ),
    _subject(
        "MLG",
        _kernel(lambda problem: LaplacianKernel(seed=problem.seed, levels=(problem.layers,), smoothing=(0.1,))),
        "features come from 50 sampled nodes, which avoids comparing all pairs of nodes: far below the claimed N⁵ "
        "until the N³ of the whole graph's Laplacian prevails; a level costs the cube of the surroundings, which grow "
        "with it until they are the whole graph",
        layers_are="levels",
        most_nodes=256,
    ),
    _subject("Structure2vec", _network(recurrent.build_structure2vec), "mean-field rounds", layers_are="rounds"),
    _subject(
        "Spatial GCN",
        _spatial,
        "the spatial construction of Bruna et al. as the paper's supplement describes it, a learned matrix between all "
        "nodes in each layer; the tables of accuracies have Kipf's network in this place",
    ),
    _subject("Spectrum GCN", _network(convolutions.build_chebyshev), "Chebyshev polynomials of 3 terms"),
    _subject("Spectrum GCN, Kipf's form", _network(convolutions.build_gcn), "polynomials of the first degree"),
    _subject(
        "DCNN",
        _network(convolutions.build_diffusion),
        "diffusion is computed step by step along the edges; the claimed N² is that of stored powers of the transition "
        "matrix",
        layers_are="hops",
    ),
    _subject(
        "Patchy-San",
        _patchy,
        "one layer alone: to see as far as L layers, its field must take in all nodes within L edges (N: fields of 10 "
        "nodes, as published)",
        deepen=_wide_patchy,
        most_nodes=512,
        layers_are="hops that the field covers",
    ),
    _subject(
        "Neural fingerprints", _network(convolutions.build_fingerprints), "a matrix for each number of neighbours"
    ),
    _subject("GGNN", _network(recurrent.build_gated), "gated steps", layers_are="steps"),
    _subject("Column network", _network(recurrent.build_column), "highway layers"),
    _subject("MPNN", _network(recurrent.build_message_passing), "edge network, GRU, Set2Set", layers_are="steps"),
    _subject(
        "1-head GAT",
        _network(convolutions.build_gat),
        "one head of attention; the paper's text grants it precise nodes, but patterns of simple shape only",
    ),
    _subject(
        "DiffPool",
        _network(diffpool.build_diffpool),
        "dense matrices of nodes and clusters, a quarter as many as nodes: the paper's row leaves pooling out",
        layers_are="layers in each of its stages",
    ),
    _subject("GIN", _network(convolutions.build_gin), "today's yardstick, not in the paper"),
    _subject("Ego-CNN", _ego, "K = 16, D = 128; absent neighbours cost nothing"),
)
"""In the order of the paper."""
