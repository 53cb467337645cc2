"""The neural rivals by name: a seed -> an untrained system, with what a reader must know about each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from lab.rivals.networks.convolutions import (
    build_chebyshev,
    build_diffusion,
    build_fingerprints,
    build_gat,
    build_gcn,
    build_gin,
)
from lab.rivals.networks.diffpool import build_diffpool
from lab.rivals.networks.patchy import PatchySanConvolutions, PatchySanNetwork, read_fields
from lab.rivals.networks.recurrent import (
    build_column,
    build_gated,
    build_message_passing,
    build_structure2vec,
)
from lab.rivals.networks.system import Design, NetworkSystem, Settings
from lab.rivals.rival import Rival, RivalModel

TRAINING = "AdamW and early stopping by validation accuracy, as for every network here"
READOUT = "dropout, two dense layers as head"

QUICK_EPOCHS = 10


def _rival(name: str, design: Design, *, source: str, library: str, departures: str) -> Rival:
    return Rival(
        name=name,
        source=source,
        library=library,
        departures=f"{departures}; {TRAINING}",
        build=partial(_build, design),
        build_quick=partial(_build, replace(design, settings=replace(design.settings, epochs=QUICK_EPOCHS))),
    )


def _build(design: Design, seed: int) -> RivalModel:
    return NetworkSystem(design, seed=seed)


SPATIAL_GCN = _rival(
    "Spatial GCN",
    Design(build_gcn),
    source="Kipf and Welling, ICLR 2017, in the place of Bruna et al., ICLR 2014",
    library="torch-geometric: GCNConv",
    departures=(
        "the spatial construction of Bruna et al. learns weights for the clusters of one fixed graph and says nothing "
        "of another graph, so its best-known local successor runs; made for nodes: here 3 layers of 64 with batch "
        f"normalisation, the mean over nodes, {READOUT}; edge labels are not read"
    ),
)

SPECTRUM_GCN = _rival(
    "Spectrum GCN",
    Design(build_chebyshev),
    source="Defferrard et al., NeurIPS 2016, the fast form of Bruna et al., ICLR 2014",
    library="torch-geometric: ChebConv",
    departures=(
        "made for one fixed graph: the mean over nodes stands for pooling by graph coarsening; polynomials of 3 terms, "
        f"3 layers of 64 with batch normalisation, {READOUT}; edge labels are not read"
    ),
)

DCNN = _rival(
    "DCNN",
    Design(build_diffusion, Settings(learning_rate=1e-2)),
    source="Atwood and Towsley, NeurIPS 2016, the form for whole graphs",
    library="none: powers of the transition matrix in a few lines of torch",
    departures="0 to 5 hops, computed step by step instead of from a stored tensor; AdamW instead of AdaGrad",
)

STRUCTURE2VEC = _rival(
    "Structure2vec",
    Design(build_structure2vec),
    source="Dai et al., ICML 2016, the mean-field variant",
    library="none: the fixed-point iteration in a few lines of torch",
    departures=f"4 rounds of width 64; the graph's vector is batch-normalised, for sums over hubs are large; {READOUT}",
)

FINGERPRINTS = _rival(
    "Neural fingerprints",
    Design(build_fingerprints),
    source="Duvenaud et al., NeurIPS 2015",
    library="torch-geometric: MFConv",
    departures=(
        "3 layers of 64 with batch normalisation and ReLU, fingerprints of 128; matrices for up to 10 neighbours "
        f"instead of 5; edge labels are not read; {READOUT}"
    ),
)

GGNN = _rival(
    "GGNN",
    Design(build_gated),
    source="Li et al., ICLR 2016",
    library="torch-geometric: GatedGraphConv",
    departures=(
        "5 steps of width 64; a matrix for each step instead of one for each edge label, which are not read; the "
        f"graph's vector is batch-normalised before its tanh; {READOUT}"
    ),
)

COLUMN_NETWORK = _rival(
    "Column network",
    Design(build_column),
    source="Pham et al., AAAI 2017",
    library="none: highway layers in a few lines of torch",
    departures=f"made for nodes: here the mean over nodes and {READOUT}; 10 layers of 64, relations are edge labels",
)

MPNN = _rival(
    "MPNN",
    Design(build_message_passing),
    source="Gilmer et al., ICML 2017",
    library="torch-geometric: NNConv, Set2Set; torch: GRUCell",
    departures=f"3 steps of width 64, no distances and no virtual edges, {READOUT}",
)

GAT = _rival(
    "1-head-attention GAT",
    Design(build_gat),
    source="Veličković et al., ICLR 2018, with a single head as in the paper's tables",
    library="torch-geometric: GATConv",
    departures=(
        "made for nodes: here 3 layers of 64 with batch normalisation and ReLU, the mean over nodes, "
        f"{READOUT}; edge labels are not read"
    ),
)

DIFFPOOL = _rival(
    "DiffPool",
    Design(build_diffpool),
    source="Ying et al., NeurIPS 2018",
    library="torch-geometric: DenseSAGEConv, dense_diff_pool",
    departures=f"width 64; {READOUT}; edge labels are not read; refuses graphs whose dense matrices exceed the memory",
)

GIN = _rival(
    "GIN",
    Design(build_gin),
    source="Xu et al., ICLR 2019",
    library="torch-geometric: GINConv",
    departures="4 layers of 64; no decay of the learning rate; edge labels are not read",
)

PATCHY_SAN = _rival(
    "Patchy-San",
    Design(PatchySanNetwork, Settings(learning_rate=1e-3), read_fields),
    source="Niepert et al., ICML 2016, fields of 10 nodes with edges",
    library="igraph: canonical forms (BLISS)",
    departures=(
        "nodes by degree, then Weisfeiler-Lehman colour, then canonical form; one bank of 16 filters reads nodes and "
        "edges together instead of two that are merged; AdamW instead of RMSProp"
    ),
)

PATCHY_SAN_CONVOLUTIONS = _rival(
    "Patchy-San + standard convolutions",
    Design(PatchySanConvolutions, Settings(learning_rate=1e-3), read_fields),
    source="the supplement of the Ego-CNN paper, 6 layers and as many weights as the Ego-CNN",
    library="igraph: canonical forms (BLISS)",
    departures=(
        "the supplement names no sizes: here 128 filters over fields of 10, then 5 convolutions of 128 filters over 17 "
        "places of the node sequence, each with batch normalisation and dropout 0.5, the maximum over the sequence and "
        "two dense layers"
    ),
)

RIVALS: tuple[Rival, ...] = (
    STRUCTURE2VEC,
    SPATIAL_GCN,
    SPECTRUM_GCN,
    DCNN,
    PATCHY_SAN,
    FINGERPRINTS,
    GGNN,
    COLUMN_NETWORK,
    MPNN,
    GAT,
    DIFFPOOL,
    PATCHY_SAN_CONVOLUTIONS,
    GIN,
)
"""In the order of the paper's Table 1, then the supplement's, then today's yardstick."""
