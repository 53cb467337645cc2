"""CPU and GPU compared: the same network, batch and weights -> how far logits and gradients differ, as JSON.

    python -m lab measure device_agreement -o results/device_agreement.json

Also trains on the GPU, in its default precision, and scores on the sizes held out. Needs a CUDA device; runs from a
bare checkout with torch, numpy, safetensors and scikit-learn.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any

import torch

from egocnn.config import ModelConfig, Readout, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.encoder import Encoder
from egocnn.model import Model
from egocnn.nn import EgoCNN
from egocnn.train.metrics import loss_of, test_scores
from egocnn.train.recipe import learn
from lab.record import arguments, write_measured

READOUTS: tuple[Readout, ...] = ("max", "mean", "sum", "mean+max", "sort")


def largest_difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Relative to the largest number there is, so that zeros do not count as infinitely wrong."""
    return float((one.cpu() - other.cpu()).abs().max() / one.cpu().abs().max().clamp(min=1e-12))


def compare(graphs: Graphs, config: ModelConfig) -> dict[str, float]:
    encoder = Encoder.fit(graphs, config)
    torch.manual_seed(0)
    on_cpu = Model.build(config, encoder).networks[0]
    on_gpu = copy.deepcopy(on_cpu).cuda()
    prepared = encoder.apply(graphs, config)
    logits = [
        _run(network, data) for network, data in ((on_cpu, prepared), (on_gpu, prepared.to(torch.device("cuda"))))
    ]
    gradients = [
        largest_difference(p.grad, q.grad)
        for p, q in zip(on_cpu.parameters(), on_gpu.parameters(), strict=True)
        if p.grad is not None and q.grad is not None and p.numel()
    ]
    return {"logits": largest_difference(*logits), "gradients": max(gradients)}


def _run(network: EgoCNN, data: EncodedGraphs) -> torch.Tensor:
    """Logits in evaluation mode, with the gradients of the loss left in the parameters."""
    batch = data.batch(torch.arange(min(len(data), 64), device=data.node_ptr.device))
    assert batch.target is not None
    logits: torch.Tensor = network.eval()(batch).output
    torch.autograd.backward(loss_of(logits, batch.target))
    return logits.detach()


def train(graphs: Graphs) -> dict[str, Any]:
    started = time.perf_counter()
    predictor, history = learn(graphs, ModelConfig(), TrainConfig(device="cuda", epochs=30))
    tested = graphs.select("test")
    outputs = [torch.from_numpy(predictor.outputs(tested, device=device)) for device in ("cuda", "cpu")]
    return {
        "test_accuracy": test_scores(predictor, tested, device="cuda")["accuracy"],
        "epochs": len(history.epochs),
        "seconds": round(time.perf_counter() - started, 1),
        "logits": largest_difference(*outputs),
    }


def main(words: Sequence[str]) -> None:
    options = arguments("device_agreement", __doc__).parse_args(words)
    torch.backends.cuda.matmul.allow_tf32 = False
    graphs = read("compounds:alcohols")
    measured = {
        "what": "largest relative difference between CPU and GPU in float32; then a model trained on the GPU",
        "readouts": {readout: compare(graphs, ModelConfig(readout=readout)) for readout in READOUTS},
        "tied": compare(graphs, ModelConfig(tie=True)),
        "trained_on_gpu": train(graphs),
    }
    write_measured("device_agreement", words, options.out, measured, device="cuda")
