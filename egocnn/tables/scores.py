"""The paper's tables of accuracies by name: which systems on which data sets, and what it prints for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from egocnn.config import ModelConfig, TrainConfig
from egocnn.tables import published
from egocnn.tables.presets import OUR_MODEL, OUR_TRAIN, PAPER_MODEL, PAPER_TRAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A row: an Ego-CNN with its settings, or a rival by name."""

    name: str
    printed_as: str | None = None
    """the row of the paper that it is compared with; None where the paper has none"""
    rival: str | None = None
    model: ModelConfig = field(default_factory=lambda: OUR_MODEL)
    train: TrainConfig = field(default_factory=lambda: OUR_TRAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    title: str
    data: Sequence[str]
    contestants: Sequence[Contestant]
    figures: published.Figures
    parameters: Mapping[str, float] = field(default_factory=dict)
    """printed by the paper"""
    seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def _rival(key: str, name: str, *, is_printed: bool = True) -> Contestant:
    return Contestant(name=name, rival=key, printed_as=name if is_printed else None)


def _paper(name: str, printed_as: str, *, depth: int = 5, tie: bool = False) -> Contestant:
    model = replace(PAPER_MODEL, depth=depth, tie=tie)
    return Contestant(name=name, printed_as=printed_as, model=model, train=PAPER_TRAIN)


OURS = (
    _paper("Ego-CNN, the paper's settings", "Ego-CNN"),
    Contestant(name="Ego-CNN, our settings", printed_as="Ego-CNN"),
)

TABLES: dict[str, ScoreTable] = {
    "table2": ScoreTable(
        title="Accuracy on the sets of molecules and proteins",
        data=published.MOLECULES,
        contestants=(
            _rival("wl-kernel", "WL kernel"),
            _rival("dgk", "DGK"),
            _rival("subgraph2vec", "Subgraph2vec"),
            _rival("mlg", "MLG"),
            _rival("structure2vec", "Structure2vec"),
            _rival("dcnn", "DCNN"),
            _rival("patchy-san", "Patchy-San"),
            _rival("1-head-attention-gat", "1-head GAT"),
            _rival("gin", "GIN", is_printed=False),
            *OURS,
        ),
        figures=published.TABLE_2,
    ),
    "table3": ScoreTable(
        title="Accuracy on the social networks",
        data=published.NETWORKS,
        contestants=(
            _rival("dgk", "DGK"),
            _rival("patchy-san", "Patchy-San"),
            _rival("1-head-attention-gat", "1-head GAT"),
            _rival("gin", "GIN", is_printed=False),
            *OURS,
        ),
        figures=published.TABLE_3,
    ),
    "table4": ScoreTable(
        title="The scale-free prior on REDDIT-BINARY: tied and untied layers",
        data=("REDDIT-BINARY",),
        contestants=(
            _paper("Ego-CNN, 1 layer", "Ego-CNN, 1 layer", depth=1),
            _paper("Ego-CNN, 5 layers", "Ego-CNN, 5 layers"),
            _paper("Ego-CNN, 5 layers, tied", "Ego-CNN, 5 layers, tied", tie=True),
            Contestant(name="our settings, 1 layer", model=replace(OUR_MODEL, depth=1)),
            Contestant(name="our settings, 5 layers"),
            Contestant(name="our settings, 5 layers, tied", model=replace(OUR_MODEL, tie=True)),
        ),
        figures=published.TABLE_4,
        parameters=published.PARAMETERS,
    ),
    "supplement": ScoreTable(
        title="The supplement's experiments: Patchy-San with standard convolutions, and tied layers on every set",
        data=published.SUPPLEMENT,
        contestants=(
            _paper("Ego-CNN", "Ego-CNN"),
            _rival("patchy-san-standard-convolutions", "Patchy-San + convolutions"),
            _paper("Ego-CNN, tied", "Ego-CNN, tied", tie=True),
        ),
        figures=published.TABLE_SUPPLEMENT,
        seconds=published.SECONDS,
    ),
}
