"""Which critical structures recur in alcohols and in Mutagenicity: train, explain, find patterns -> patterns.json."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.read import read
from egocnn.explain import explain
from egocnn.explain.patterns import find_patterns
from egocnn.files import write_json
from egocnn.train.metrics import test_scores
from egocnn.train.recipe import learn
from lab.record import circumstances

TITLE = "The first five patterns of every class in alcohols and Mutagenicity"
DATA = ("compounds:alcohols", "Mutagenicity")
FIRST = 5


def write_recurring(*, folder: Path, seed: int = 0, say: Callable[[str], None] = print) -> dict[str, Any]:
    """The default network of each data set, and what recurs in the critical structures of all its graphs."""
    rows: list[dict[str, Any]] = []
    for source in DATA:
        graphs = read(source)
        training, test = (graphs, graphs.select("test")) if graphs.part is not None else graphs.split(seed=seed)
        say(f"{source}: training on {len(training)} graphs")
        predictor, _ = learn(training, ModelConfig(), TrainConfig(seed=seed))
        accuracy = test_scores(predictor, test, device="auto")["accuracy"]
        structures = explain(predictor, graphs, fidelity=False)
        found = find_patterns(structures, most=FIRST)
        for name in predictor.class_names:
            of_class = [pattern for pattern in found if pattern.class_name == name]
            rows += [
                {
                    "data": source,
                    "test_accuracy": round(accuracy, 4),
                    "class": name,
                    "rank": rank,
                    "name": pattern.name,
                    "sentence": str(pattern),
                    "critical": pattern.critical,
                    "p_value": pattern.p_value,
                }
                for rank, pattern in enumerate(of_class, 1)
            ]
    result = {
        "title": TITLE,
        "rows": rows,
        "command": f"egocnn reproduce patterns --seed {seed}",
        **circumstances(),
    }
    write_json(folder / "patterns.json", result)
    return result
