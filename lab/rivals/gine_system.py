"""The GINE network behind the interface that all rivals share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from lab.rivals.gine import FittedGINE, fit
from lab.rivals.rival import Rival


@dataclass(slots=True)
class GINESystem:
    """Trained by :func:`lab.rivals.gine.fit`; the validation graphs choose the epoch."""

    seed: int
    parameters: int | None = None
    fitted: FittedGINE | None = None

    def fit(self, graphs: Graphs, validation: Graphs) -> Self:
        both = [
            part.replace(part=np.full(len(part), PARTS.index(name), np.int8))
            for name, part in (("train", graphs), ("validation", validation))
        ]
        self.fitted = fit(Graphs.concat(both), seed=self.seed)
        self.parameters = sum(weights.numel() for weights in self.fitted.network.parameters())
        return self

    def predict(self, graphs: Graphs) -> Ints:
        assert self.fitted is not None
        return self.fitted.predict(graphs)


GINE_RIVAL = Rival(
    name="GINE",
    source="Hu et al., Strategies for pre-training graph neural networks, ICLR 2020",
    library="PyTorch Geometric: GINEConv",
    departures="no pre-training; one setting for every data set, 3 layers of width 128",
    build=GINESystem,
)
