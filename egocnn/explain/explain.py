"""A trained model and graphs -> one CriticalStructure per graph, all graphs of a batch together."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch

from egocnn.config import ExplainConfig
from egocnn.data.arrays import Bools, Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError
from egocnn.explain.contributions import EdgeNumbers
from egocnn.explain.huge import huge_portion
from egocnn.explain.portion import Portion, mean_over_networks
from egocnn.explain.question import Question
from egocnn.explain.structure import CriticalStructure, Trace
from egocnn.explain.techniques import TECHNIQUES, ExplainedBatch, occlude
from egocnn.explain.techniques.attention import AttentionHead
from egocnn.model import Model, check_finite
from egocnn.nn import EgoCNN, Output
from egocnn.nn.device import by_halves, choose_device, one_thread
from egocnn.nn.predict import portions

FEW = 256  # Nodes of all graphs together up to which a second thread costs more than it gives.


def explain(
    predictor: Model,
    graphs: Graphs,
    config: ExplainConfig | None = None,
    *,
    target: str | None = None,
    classes: str | Sequence[str] | None = None,
    attention: Sequence[AttentionHead] | None = None,
    fidelity: bool = True,
    device: str = "auto",
    report: Callable[[int], None] | None = None,
) -> list[CriticalStructure]:
    """The critical structure of every graph, in order.

    Importances are the means of those that the networks of the model give. ``attention``: a head for each of them.
    ``target``: which of several the model is asked about, the first by default.
    ``classes``: the class to explain, by name, one for all graphs or one for each; the predicted ones by default.
    ``fidelity=False`` saves the two further predictions per graph. ``report`` is called with the number of graphs done.
    """
    config = config or ExplainConfig()
    if predictor.targets:
        graphs = graphs.of_target(predictor.targets[0] if target is None else target)
    predictor = predictor.of_target(target)
    chosen_classes = _class_numbers(predictor, len(graphs), classes)
    found: list[CriticalStructure] = []
    with one_thread() if graphs.n_nodes <= FEW else nullcontext():
        for portion in _portions(predictor, graphs, chosen_classes, config, attention, device):
            portion.check_finite()
            critical = portion.select(config)
            measured = portion.fidelity(critical) if fidelity and not portion.is_huge else None
            found += portion.structures(critical, measured, config.technique)
            if report is not None:
                report(len(found))
    return found


def _class_numbers(predictor: Model, n_graphs: int, classes: str | Sequence[str] | None) -> Ints | None:
    names = predictor.class_names
    if classes is None:
        return None if names else np.zeros(n_graphs, np.int64)
    if not names:
        raise ConfigError("this model predicts a value; there is no class to explain")
    wanted = [classes] * n_graphs if isinstance(classes, str) else list(map(str, classes))
    if len(wanted) != n_graphs:
        raise ConfigError(f"{len(wanted)} classes for {n_graphs} graphs")
    for name in wanted:
        if name not in names:
            raise ConfigError(f"the model knows no class {name!r}; it knows {', '.join(names)}")
    return np.array([names.index(name) for name in wanted], np.int64)


def _portions(
    model: Model, graphs: Graphs, classes: Ints | None, config: ExplainConfig,
    attention: Sequence[AttentionHead] | None, device: str,
) -> Iterator[Portion]:  # fmt: skip
    """As many graphs at once as the device holds, with their importances."""
    if len(graphs) == 0:
        return
    place = choose_device(device)
    in_one_pass = config.technique == "contributions" and model.config.readout != "sort"
    if len(huge := np.flatnonzero(model.is_huge(graphs) & in_one_pass)):
        for first, last in pairwise(sorted({0, *huge.tolist(), *(huge + 1).tolist(), len(graphs)})):
            some, own = graphs[first:last], None if classes is None else classes[first:last]
            if first in huge:
                yield huge_portion(model, some, own, place)
            else:
                yield from _portions(model, some, own, config, attention, device)
        return
    data, networks = model.encode(graphs).to(place), [network.to(place).eval() for network in model.networks]
    heads = [None] * len(networks) if attention is None else [head.to(place) for head in attention]

    @torch.no_grad()
    def importances(chosen: torch.Tensor) -> Portion:
        some, batch = chosen.cpu().numpy(), data.batch(chosen)
        passes: list[Output] = [network(batch) for network in networks]
        outputs = torch.stack([each.output for each in passes])
        mean = outputs.mean(dim=0)
        check_finite(mean.double().cpu().numpy(), [graphs.names[g] for g in some.tolist()])
        of_class = mean.argmax(dim=1) if classes is None else torch.from_numpy(classes[some]).to(place)
        whole, shape = Question(networks, batch, of_class, model), model.encoder.shape(model.config)

        def question(numbers: Ints, there: Bools | None) -> Question:
            wanted = torch.from_numpy(numbers).to(place)
            part = None if there is None else torch.from_numpy(there).to(place)
            seen = networks[0].reads_absent
            parts = data.batch(chosen[wanted], None if seen else part, shape)
            presence = part.to(batch.attributes) if seen and part is not None else None
            return Question(networks, parts, of_class[wanted], model, presence)

        heads_of = zip(networks, passes, strict=True)  # nothing is read out where no node is present
        nobody = torch.cat([each.head(torch.zeros_like(of.pooled[:1])) for each, of in heads_of]).mean(dim=0).double()
        portion = Portion(
            model=model, graphs=graphs[some], classes=of_class.cpu().numpy(),
            outputs_of_each=outputs.double().cpu().numpy(), output=whole.of_outputs(mean.double()).cpu().numpy(),
            base=whole.of_outputs(nobody.expand(len(some), -1)).cpu().numpy(), whole=whole, question=question,
            known={b"": nobody.cpu().numpy()}, nodes=np.zeros(0), edges=np.zeros(0), trace=None,
        )  # fmt: skip
        if config.technique == "occlusion":
            nodes, edges = occlude(model, portion.graphs, portion.classes, device=device)
            return replace(portion, nodes=nodes, edges=edges)
        places, edge_numbers = batch.places(shape), EdgeNumbers.of(portion.graphs, place)
        found = [
            TECHNIQUES[config.technique](ExplainedBatch(
                network=network, batch=batch, output=output, classes=of_class, places=places, edges=edge_numbers,
                attention=head, settings=config,
            ))
            for network, output, head in zip(networks, passes, heads, strict=True)
        ]  # fmt: skip
        several = zip(*([(each.nodes, each.edges), *each.trace] for each in found), strict=True)
        (nodes, edges), *trace = ([mean_over_networks(kind) for kind in zip(*each, strict=True)] for each in several)
        layers = Trace(np.stack([n for n, _ in trace]), np.stack([e for _, e in trace])) if trace else None
        portion = replace(portion, nodes=nodes, edges=edges, trace=layers).symmetric()
        if config.technique != "contributions":
            return portion
        read_out = mean_over_networks([each.read_out for each in found if each.read_out is not None])
        return portion.adding_up(read_out, config.steps)

    for chosen in portions(data, gradients=True):
        with asking_no_gradients(networks):
            found = list(by_halves(importances, chosen))
        yield from found


@contextmanager
def asking_no_gradients(networks: Sequence[EgoCNN]) -> Iterator[None]:
    """The weights ask for no gradients meanwhile: to compute them takes as long as all the rest."""
    asking = [parameter for network in networks for parameter in network.parameters() if parameter.requires_grad]
    for parameter in asking:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in asking:
            parameter.requires_grad_()
