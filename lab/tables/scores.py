"""The paper's tables of accuracies by name: which systems on which data sets, and what it prints for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from egocnn.config import ModelConfig, TrainConfig
from lab.tables import published
from lab.tables.presets import OUR_MODEL, OUR_TRAIN, PAPER_MODEL, PAPER_TRAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A row: an Ego-CNN with its settings, or a rival by name."""

    name: str
    printed_as: str | None = None  # the row of the paper that it is compared with; None where the paper has none
    rival: str | None = None
    is_kernel: bool = False  # nothing in it starts at random: one fit a fold, whatever the protocol asks for
    together: int | None = None
    """restarts of an Ego-CNN that are tested together, their probabilities averaged; None: as the protocol has it"""
    alone: bool = False  # of restarts that were trained together, the mean score of each by itself
    kept_as: str | None = None  # the name of the row whose trainings this one shows in another light
    model: ModelConfig = field(default_factory=lambda: OUR_MODEL)
    train: TrainConfig = field(default_factory=lambda: OUR_TRAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    title: str
    data: Sequence[str]
    contestants: Sequence[Contestant]
    figures: published.Figures
    parameters: Mapping[str, float] = field(default_factory=dict)  # printed by the paper
    seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


TOGETHER = 5  # Restarts that are averaged; 3 on the large sets.


def _rival(key: str, name: str, *, is_printed: bool = True) -> Contestant:
    return Contestant(name=name, rival=key, printed_as=name if is_printed else None)


def _kernel(key: str, name: str) -> Contestant:
    return replace(_rival(key, name), is_kernel=True)


def _paper(name: str, printed_as: str, *, depth: int = 5, tie: bool = False) -> Contestant:
    model = replace(PAPER_MODEL, depth=depth, tie=tie)
    kept_as = f"paper, {depth} layer{'s' if depth > 1 else ''}{', tied' if tie else ''}"
    return Contestant(name=name, printed_as=printed_as, kept_as=kept_as, model=model, train=PAPER_TRAIN)


OURS = (
    _paper("Ego-CNN, the paper's settings", "Ego-CNN"),
    Contestant(name="Ego-CNN, our settings", printed_as="Ego-CNN", kept_as="ours", together=TOGETHER, alone=True),
    Contestant(name="Ego-CNN, our settings, averaged", printed_as="Ego-CNN", kept_as="ours", together=TOGETHER),
)
OURS_TIED = Contestant(name="our settings, tied", kept_as="ours, tied", model=replace(OUR_MODEL, tie=True))

TABLES: dict[str, ScoreTable] = {
    "table2": ScoreTable(
        title="Accuracy on the sets of molecules and proteins",
        data=published.MOLECULES,
        contestants=(
            _kernel("wl-kernel", "WL kernel"),
            _kernel("dgk", "DGK"),
            _kernel("subgraph2vec", "Subgraph2vec"),
            _kernel("mlg", "MLG"),
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
            _kernel("dgk", "DGK"),
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
            replace(OURS[1], name="our settings", printed_as=None),
            OURS_TIED,
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
