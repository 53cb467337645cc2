"""Explanations of networks that read every layer, and degrees as labels, of graphs with more neighbours than K."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from egocnn.config import ExplainConfig, Technique
from egocnn.data.graphs import Graphs
from egocnn.explain import explain, fit_attention
from egocnn.explain.techniques import by_attention, by_relevance
from egocnn.explain.techniques.attention import AttentionHead, load_attention, save_attention
from egocnn.model import Model
from egocnn.train.recipe import learn
from tests.explain.random_models import forward_pass, head_for, predictor_for
from tests.explain.test_explain import assert_permuted
from tests.support.tiny import TRAIN, plain_model

TECHNIQUES = pytest.mark.parametrize("technique", get_args(Technique))
FULL: dict[str, Any] = {"k": 2, "jump": True, "head_norm": True, "pool_norm": True, "degrees": True}


def hubs(n_graphs: int = 6, *, seed: int = 0) -> Graphs:
    """Without labels: two joined hubs with five to eight leaves each, some of the leaves joined in their turn."""
    random = np.random.default_rng(seed)
    counts, edges, first = [], [], 0
    for _ in range(n_graphs):
        leaves = [int(number) for number in random.integers(5, 9, 2)]
        start = first + 2
        edges.append((first, first + 1))
        for hub, number in enumerate(leaves):
            edges += [(first + hub, start + leaf) for leaf in range(number)]
            edges += [(start, start + 1)] if random.random() < 0.5 else []
            start += number
        counts.append(start - first)
        first = start
    target = np.arange(n_graphs) % 2
    return Graphs.from_edges(node_counts=counts, edges=np.array(edges), target=target, class_names=("no", "yes"))


def answers(predictor: Model, graphs: Graphs, technique: Technique, heads: Sequence[AttentionHead]) -> list[Any]:
    return explain(predictor, graphs, ExplainConfig(technique=technique, steps=4), attention=heads, device="cpu")


# ── evidence of every layer ───────────────────────────────────────────────────────────────────────


def test_a_head_that_looks_at_the_embeddings_alone_sends_nothing_through_the_layers() -> None:
    graphs = hubs()
    predictor = predictor_for(graphs, jump=True, depth=2, k=1)
    with torch.no_grad():
        predictor.networks[0].hidden.weight[:, 8:] = 0
    above, between, embedded, at_the_input = by_relevance(forward_pass(predictor, graphs, [0, 1] * 3)).trace
    for nodes, edges in (above, between):
        assert bool((nodes == 0).all())
        assert bool((edges == 0).all())
    assert bool((embedded[0] != 0).any())
    assert bool((embedded[1] == 0).all())
    assert bool((at_the_input[1] != 0).any())


def test_the_papers_technique_is_blind_to_evidence_of_lower_layers() -> None:
    graphs = hubs()
    predictor = predictor_for(graphs, jump=True)
    one = by_attention(forward_pass(predictor, graphs, attention=head_for(8)))
    with torch.no_grad():
        predictor.networks[0].hidden.weight.zero_()
    other = by_attention(forward_pass(predictor, graphs, attention=head_for(8)))
    assert float(one.nodes.abs().max()) > 0
    assert torch.equal(one.nodes, other.nodes)


# ── invariance ────────────────────────────────────────────────────────────────────────────────────


@TECHNIQUES
@pytest.mark.parametrize("changes", [{}, {"readout": "mean+max"}], ids=str)
def test_renumbering_graphs_with_hubs_permutes_the_answer(technique: Technique, changes: dict[str, Any]) -> None:
    graphs = hubs()
    assert_permuted(graphs, predictor_for(graphs, **(FULL | changes)), technique, seed=3, tolerance=1e-3)


# ── trained, saved, loaded ────────────────────────────────────────────────────────────────────────


def test_a_trained_model_with_every_setting_is_saved_with_its_attention_and_explains_as_before(tmp_path: Path) -> None:
    graphs = hubs(12)
    config = plain_model(**(FULL | {"width": 8, "depth": 2, "hidden": 8, "slots": 4, "readout": "sum"}))
    predictor, _ = learn(graphs, config, TRAIN)
    heads = fit_attention(predictor, graphs, epochs=2)
    predictor.save(tmp_path)
    save_attention(heads, tmp_path)
    loaded = Model.load(tmp_path)
    assert loaded.config == config
    assert loaded.encoder.by_degree
    assert loaded.encoder.node_label_names == predictor.encoder.node_label_names
    again = load_attention(tmp_path, loaded)
    assert again is not None
    for technique in ("relevance", "paper"):
        one, other = answers(predictor, graphs, technique, heads), answers(loaded, graphs, technique, again)
        assert [each.to_plain(trace=True) for each in one] == [each.to_plain(trace=True) for each in other]
        assert any(np.abs(each.node_importance).max() > 0 for each in one)


def test_a_network_left_in_training_mode_is_read_in_evaluation_and_keeps_its_statistics() -> None:
    graphs = hubs()
    predictor = predictor_for(graphs, **FULL)
    expected = answers(predictor, graphs, "relevance", [head_for(8)])
    before = {name: value.clone() for name, value in predictor.networks[0].state_dict().items()}
    predictor.networks[0].train()
    found = answers(predictor, graphs, "relevance", [head_for(8)])
    assert [each.to_plain() for each in found] == [each.to_plain() for each in expected]
    assert all(torch.equal(value, before[name]) for name, value in predictor.networks[0].state_dict().items())
