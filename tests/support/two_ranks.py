"""Run by torchrun: every rank trains on its share, and all write what they come to.

In double precision, so that only a mistake can be larger than rounding: a bias before a norm has no slope, and AdamW
makes steps of full length of what rounding leaves in its place.
"""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor, nn

from egocnn.config import ModelConfig, TrainConfig
from egocnn.train.engines.common import Member
from egocnn.train.engines.distributed import World
from egocnn.train.engines.distributed.engine import SharedNorm, joined
from egocnn.train.history import History, mean_history
from egocnn.train.loop import fit
from tests.support.tiny import SIZES, TRAIN, alcohols, oxygens, parts, plain_model, several_targets, two_targets

EXACT: dict[str, Any] = SIZES | {"dropout": 0.0}
CASES: dict[str, tuple[ModelConfig, TrainConfig]] = {
    "uneven shares": (plain_model(**EXACT), replace(TRAIN, batch_size=3)),
    "weighted classes": (plain_model(**EXACT, head_norm=True), replace(TRAIN, class_weights=True, batch_size=5)),
    "tied layers": (plain_model(**EXACT, tie=True), TRAIN),
    "fewer graphs than ranks": (plain_model(**EXACT, head_norm=True, pool_norm=True), replace(TRAIN, batch_size=1)),
    "values": (plain_model(**EXACT, readout="sort", sort_nodes=4), replace(TRAIN, batch_size=7)),
    "all that can be read": (
        plain_model(**EXACT, readout="mean+log+max", jump=True, pool_norm=True, count_inputs=True),
        replace(TRAIN, batch_size=4),
    ),
    "several networks": (plain_model(**EXACT), replace(TRAIN, batch_size=3, networks=2, epochs=3)),
    "several targets": (plain_model(**EXACT), replace(TRAIN, batch_size=3)),
    "several targets, weighted classes": (plain_model(**EXACT), replace(TRAIN, class_weights=True, batch_size=5)),
    "mean score of two targets": (plain_model(**EXACT), replace(TRAIN, monitor="log_loss", batch_size=3)),
    "stopped early": (plain_model(**EXACT), replace(TRAIN, epochs=20, patience=3, learning_rate=0.3)),
}


def trained(case: str, *, together: bool) -> tuple[dict[str, Tensor], History]:
    model, train = CASES[case]
    others = {"values": oxygens(20), "mean score of two targets": two_targets()}
    graphs = others.get(case, several_targets() if case.startswith("several targets") else alcohols())
    members = [Member(*parts(graphs, model, seed=seed), seed) for seed in range(train.networks)]
    for member in members:  # class weights are float32
        member.network.double().out.register_forward_hook(lambda _, __, logits: logits.float())
    histories = fit(members, train, engine="distributed" if together else "plain")
    networks = nn.ModuleList(member.network for member in members)
    assert not any(isinstance(module, SharedNorm) for module in networks.modules())
    return networks.state_dict(), mean_history(histories)


def main(folder: Path) -> None:
    world = World.here()
    with joined(world, device="cpu"):
        tensors, histories = dict[str, Tensor](), {}
        for case in CASES:
            state, history = trained(case, together=True)
            tensors |= {f"{case}.{name}": value.clone() for name, value in state.items()}
            histories[case] = [asdict(epoch) for epoch in history.epochs]
    save_file(tensors, folder / f"rank{world.rank}.safetensors")
    (folder / f"rank{world.rank}.json").write_text(json.dumps(histories))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
