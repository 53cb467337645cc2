"""Do explanations on the GPU equal those on the CPU? Every technique, graph by graph -> JSON.

    python -m lab measure explain_agreement -o results/explain_agreement.json

An untrained network with the default settings explains generated alcohols and isomers on both devices; the largest
difference of an importance is told relative to the largest importance of its graph.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import torch

from egocnn.config import ExplainConfig, ModelConfig, Technique
from egocnn.encode.encoder import Encoder
from egocnn.explain import explain, fit_attention
from egocnn.model import Model
from lab.families import read
from lab.record import arguments, write_measured

TOLERANCE = 1e-3  # float32 over a few layers, divided and summed up in another order


def measure(source: str, readout: Any) -> list[dict[str, Any]]:
    graphs = read(source)[:64]
    config = ModelConfig(readout=readout)
    torch.manual_seed(0)
    predictor = Model.build(config, Encoder.fit(graphs, config))
    predictor.networks[0].eval()
    attention = fit_attention(predictor, graphs, epochs=5, device="cpu")
    rows = []
    for technique in get_args(Technique):
        found = {
            device: explain(predictor, graphs, ExplainConfig(technique=technique), attention=attention, device=device)
            for device in ("cpu", "cuda")
        }
        worst = 0.0
        for one, other in zip(found["cpu"], found["cuda"], strict=True):
            for part in ("node_importance", "edge_importance"):
                a, b = getattr(one, part), getattr(other, part)
                if len(a):
                    worst = max(worst, float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-12)))
        rows.append({"data": source, "readout": readout, "technique": technique, "largest_difference": worst})
        print(rows[-1], flush=True)
    return rows


def main(words: Sequence[str]) -> None:
    options = arguments("explain_agreement", __doc__).parse_args(words)
    if not torch.cuda.is_available():
        sys.exit("no GPU here")
    rows = [
        row
        for source in ("compounds:alcohols", "compounds:isomers")
        for readout in ("max", "sort")
        for row in measure(source, readout)
    ]
    measured = {
        "what": "largest difference of an importance between GPU and CPU, relative to the graph's largest",
        "rows": rows,
        "tolerance": TOLERANCE,
        "agrees": all(row["largest_difference"] < TOLERANCE for row in rows),
    }
    write_measured("explain_agreement", words, options.out, measured, device="cuda")
