from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ExplainConfig, Technique
from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError
from egocnn.explain import explain, fit_attention
from egocnn.explain.structure import CriticalStructure
from egocnn.model import Model
from egocnn.nn import Output, predict
from egocnn.train.recipe import learn
from tests.explain.random_models import USUAL, assert_close, predictor_for
from tests.support.invariance import relabel
from tests.support.samples import cycle, one_graph, sure
from tests.support.strategies import EDGE_NAMES, NODE_NAMES, dressed, random_connected, random_graphs, random_trees
from tests.support.tiny import MODEL, TRAIN, alcohols, oxygens

TECHNIQUES = pytest.mark.parametrize("technique", get_args(Technique))
CLASSES = ("a", "b", "c")


def explain_by(predictor: Model, graphs: Graphs, technique: Technique, **settings: Any) -> list[CriticalStructure]:
    """With an attention layer where the technique needs one."""
    wanted = {name: settings.pop(name) for name in ("classes", "fidelity", "report") if name in settings}
    attention = fit_attention(predictor, graphs, epochs=1) if technique == "paper" and graphs.n_nodes else None
    config = ExplainConfig(**({"technique": technique, "steps": 4} | settings))
    return explain(predictor, graphs, config, attention=attention, device="cpu", **wanted)


MODELS: list[dict[str, Any]] = [
    {"tie": True},
    *({"readout": readout} for readout in ("max", "mean", "sum", "mean+max", "sort")),
    {"embedding": "attributes", "with_": ("node_attr",)},
    {"own": True},
    {"slots": 8, "k": 2},
    {"slots": 8, "k": 2, "with_": ("node_attr", "edge_weight")},
    {"depth": 1, "slots": 1, "k": 1},
    {"with_": ("edge_weight",)},
    {"with_": ("node_attr",)},
    {"without": ("node_label",)},
    {"without": ("edge_label",)},
    {"without": ("node_label", "edge_label")},
    {"without": ("node_label", "edge_label"), "with_": ("node_attr", "edge_weight"), "tie": True},
    {"outputs": 1},
    {"outputs": 1, "readout": "sort"},
    {"jump": True, "own": True},
    {"count_inputs": True, "own": True},
    {"count_inputs": True, "pool_norm": True, "readout": "mean+log+max", "jump": True},
    {"count_inputs": True, "readout": "sort"},
    {"jump": True, "readout": "sort", "k": 1},
    {"jump": True, "readout": "mean+max", "embedding": "attributes", "with_": ("node_attr",), "outputs": 1},
    {"jump": True, "k": 1, "degrees": True, "head_norm": True, "without": ("node_label",)},
]


def with_columns(graphs: Graphs, *, with_: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> Graphs:
    """The graphs with some columns more or less."""
    more = dressed(graphs, seed=7)
    less: dict[str, Any] = dict.fromkeys(without) | {f"{name}_names": () for name in without}
    return graphs.replace(**{name: getattr(more, name) for name in with_}, **less)


def odd_graphs() -> Graphs:
    """No nodes, one node, isolated nodes, loops, labels never seen and a label by a name of its own."""
    return Graphs.from_edges(
        node_counts=[0, 1, 5, 3, 0, 2, 0],
        edges=np.array([[1, 2], [1, 1], [5, 5], [6, 7], [7, 8], [8, 6], [9, 10]]),
        node_label=np.array([0, -1, 1, 2, 0, 0, 0, 3, 0, 3, 3]),
        node_label_names=(*NODE_NAMES, "Xe"),
        edge_label=np.array([0, 1, -1, 0, 1, 2, 2]),
        edge_label_names=(*EDGE_NAMES, "odd"),
    )


def check_record(structure: CriticalStructure, technique: str, depth: int) -> None:
    N, E = structure.graph.n_nodes, len(structure.graph.edges)
    assert structure.technique == technique
    assert structure.node_importance.shape == (N,)
    assert structure.edge_importance.shape == (E,)
    assert np.isfinite(structure.node_importance).all()
    assert np.isfinite(structure.edge_importance).all()
    assert structure.fidelity is not None
    assert np.isfinite([structure.fidelity.kept, structure.fidelity.removed]).all()
    assert (np.diff(structure.critical_nodes) > 0).all()
    inside = np.isin(structure.graph.edges, structure.critical_nodes).all(axis=1)
    np.testing.assert_array_equal(structure.critical_edges, np.flatnonzero(inside))
    assert (structure.trace is not None) == (technique in ("contributions", "relevance", "paper", "grad-cam"))
    if structure.trace is not None:
        assert structure.trace.nodes.shape == (depth + 2, N)
        assert structure.trace.edges.shape == (depth + 2, E)
        np.testing.assert_array_equal(structure.trace.nodes[-1], structure.node_importance)
        np.testing.assert_array_equal(structure.trace.edges[-1], structure.edge_importance)
        assert np.isfinite(structure.trace.nodes).all()
        assert not structure.trace.edges[0].any()  # at the deepest layer nothing has crossed an edge


@pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(f"{k}={v}" for k, v in model.items()))
def test_every_technique_explains_every_model_on_every_graph(model: dict[str, Any]) -> None:
    changes = model.copy()
    columns = {name: changes.pop(name, ()) for name in ("with_", "without")}
    outputs = changes.pop("outputs", 3)
    trees = random_trees(6, nodes=8, seed=0, target=np.arange(6) % 3, class_names=CLASSES)
    trees = trees.replace(target=np.arange(6.0), class_names=()) if outputs == 1 else trees
    predictor = predictor_for(with_columns(trees, **columns), outputs=outputs, **changes)
    attention = fit_attention(predictor, with_columns(trees, **columns), epochs=1)
    odd = with_columns(odd_graphs(), **columns)
    several = (with_columns(trees, **columns), odd, odd[:1], odd[:0])  # also a graph without nodes, and no graphs
    for technique, graphs in product(get_args(Technique), several):
        found = explain(predictor, graphs, ExplainConfig(technique=technique, steps=2), attention=attention)
        assert [structure.name for structure in found] == list(graphs.names), technique
        for structure in found:
            check_record(structure, technique, predictor.config.depth)
        if technique != "grad-cam" and graphs.n_nodes:  # which may find nothing that speaks for a class
            assert any(np.abs(structure.node_importance).max(initial=0) > 0 for structure in found), technique


@pytest.fixture(scope="module")
def trained() -> Model:
    return replace(learn(alcohols(), MODEL, replace(TRAIN, epochs=15))[0], temperature=1.7)


@pytest.fixture(scope="module")
def several() -> Model:
    return learn(alcohols(), MODEL, replace(TRAIN, epochs=4, networks=2))[0]


@pytest.fixture(scope="module")
def regressor() -> Model:
    return learn(oxygens(), MODEL, replace(TRAIN, epochs=10))[0]


def test_predictions_in_a_record_are_the_models_own(trained: Model, regressor: Model) -> None:
    probability = trained.probabilities(alcohols())
    for row, structure in zip(probability, explain_by(trained, alcohols(), "relevance", fidelity=False), strict=True):
        assert structure.fidelity is None
        assert structure.predicted == trained.class_names[row.argmax()] == structure.explained
        assert structure.probability == pytest.approx(row.max(), rel=1e-5)
    found = explain_by(regressor, oxygens(), "relevance")
    for value, structure in zip(regressor.values(oxygens()), found, strict=True):
        assert structure.predicted == pytest.approx(value, rel=1e-6)
        assert structure.probability is None
        assert structure.explained is None


@TECHNIQUES
def test_any_class_is_explained_by_its_name(technique: Technique) -> None:
    trees = random_trees(6, nodes=8, seed=0, target=np.arange(6) % 3, class_names=CLASSES)
    predictor = predictor_for(trees, readout="sum")
    answers = {name: explain_by(predictor, trees, technique, classes=name) for name in CLASSES}
    for name, structures in answers.items():
        assert {structure.explained for structure in structures} == {name}
    assert [s.predicted for s in answers["a"]] == [s.predicted for s in answers["b"]]
    mixed = explain_by(predictor, trees, technique, classes=["a", "b", "c", "c", "b", "a"])
    for number, structure in enumerate(mixed):
        wanted = answers[str(sure(structure.explained))][number]
        assert_close(structure.node_importance, wanted.node_importance, tolerance=1e-5)
    if technique != "paper":  # whose attention knows of no class
        assert not np.allclose(answers["a"][0].node_importance, answers["b"][0].node_importance)
    by_default = explain_by(predictor, trees, technique)
    assert [s.explained for s in by_default] == [s.predicted for s in by_default]


def test_classes_that_the_model_does_not_know_are_refused(trained: Model, regressor: Model) -> None:
    for model, graphs, classes, rule in (
        (trained, alcohols(), "ether", r"^the model knows no class 'ether'; it knows \w+, \w+$"),
        (trained, alcohols()[:3], list(trained.class_names), "2 classes for 3 graphs"),
        (regressor, oxygens(), "high", "predicts a value; there is no class"),
    ):
        with pytest.raises(ConfigError, match=rule):
            explain(model, graphs, classes=classes)
    with pytest.raises(ConfigError, match="needs an attention layer"):
        explain(trained, alcohols(), ExplainConfig(technique="paper"))


def predicted_with(predictor: Model, graphs: Graphs, number: int, nodes: Ints) -> Floats:
    """What the networks say where nothing but these nodes of one graph is present: (C) outputs"""
    batch = predictor.encode(graphs).batch(torch.tensor([number]))
    presence = torch.from_numpy(np.isin(np.arange(len(batch.place)), nodes)).float()
    with torch.no_grad():
        outputs: list[Output] = [network.eval()(batch, presence) for network in predictor.networks]
    found: Floats = torch.stack([each.output[0] for each in outputs]).mean(dim=0).double().numpy()
    return found


def test_fidelity_is_what_the_model_predicts_for_parts_of_the_graph_and_the_share_of_the_evidence_in_them(
    trained: Model, several: Model, regressor: Model
) -> None:
    for predictor, graphs in ((trained, alcohols()[:12]), (several, alcohols()[:12]), (regressor, oxygens()[:12])):
        found = explain_by(predictor, graphs, "relevance", select="threshold", threshold=0.5)
        assert any(0 < len(structure.critical_nodes) < structure.graph.n_nodes for structure in found)
        for number, structure in enumerate(found):
            rest = np.setdiff1d(np.arange(structure.graph.n_nodes), structure.critical_nodes)
            shown, asked = [], []
            for nodes in (rest, structure.critical_nodes):
                outputs = predicted_with(predictor, graphs, number, nodes)[None]
                (row,) = predictor.interpret(torch.from_numpy(outputs))
                if predictor is regressor:
                    shown.append(float(row))
                    asked.append(float(row))
                else:
                    shown.append(float(row[predictor.class_names.index(str(structure.explained))]))
                    asked.append(float(np.log(shown[-1] / (1 - shown[-1]))))
            assert structure.fidelity is not None
            assert [structure.fidelity.removed, structure.fidelity.kept] == pytest.approx(shown, rel=1e-4, abs=1e-5)
            evidence = structure.output - structure.base
            lost, kept = (structure.output - asked[0]) / evidence, (asked[1] - structure.base) / evidence
            assert structure.fidelity.evidence_lost == pytest.approx(lost, rel=1e-3, abs=1e-3)
            assert structure.fidelity.evidence_kept == pytest.approx(kept, rel=1e-3, abs=1e-3)


def test_where_nothing_is_critical_nothing_is_lost_and_none_of_the_evidence_is_kept(trained: Model) -> None:
    found = explain_by(trained, alcohols(), "contributions", largest=0.0, evidence=1.0)
    empty = [structure for structure in found if not len(structure.critical_nodes)]
    assert empty
    for structure in empty:
        assert structure.fidelity is not None
        assert structure.fidelity.evidence_lost == pytest.approx(0, abs=1e-5)
        assert structure.fidelity.evidence_kept == pytest.approx(0, abs=1e-5)


def test_the_smallest_set_alone_is_predicted_as_the_whole_graph_is(trained: Model, regressor: Model) -> None:
    for predictor, graphs in ((trained, alcohols()), (regressor, oxygens()[:15])):
        found = list(enumerate(explain_by(predictor, graphs, "relevance", select="smallest")))
        smaller = [(number, each) for number, each in found if len(each.critical_nodes) < each.graph.n_nodes]
        assert smaller or predictor is regressor
        for number, structure in smaller:
            alone = predicted_with(predictor, graphs, number, structure.critical_nodes)
            outside = np.setdiff1d(np.arange(structure.graph.n_nodes), structure.critical_nodes)
            least = structure.node_importance[structure.critical_nodes].min()
            assert (structure.node_importance[outside] < least).all()
            if predictor is trained:
                assert predictor.class_names[alone.argmax()] == structure.predicted
            else:
                assert abs(float(alone[0] - predictor.outputs(graphs[[number]])[0, 0])) <= 0.1001


def test_progress_is_reported_portion_by_portion_and_portions_change_nothing(
    trained: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    at_once = explain_by(trained, alcohols(), "relevance")
    monkeypatch.setattr(predict, "FITS_THE_CACHE", 50)
    in_portions = explain_by(trained, alcohols(), "relevance", report=counts.append)
    assert len(counts) > 2
    assert counts == sorted(set(counts))
    assert counts[-1] == len(alcohols())
    for one, other in zip(at_once, in_portions, strict=True):
        assert one.name == other.name
        assert_close(one.node_importance, other.node_importance, tolerance=1e-5)


@pytest.mark.parametrize("usual", [False, True])
def test_ways_to_compute_less_change_nothing(usual: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of parts that no layer tells apart are computed once, or each by itself."""
    graphs = alcohols()
    predictor = predictor_for(graphs, networks=3, **(USUAL if usual else {}))
    found = []
    for few in (0, 1 << 30):
        monkeypatch.setattr(import_module("egocnn.explain.explain"), "FEW", few)
        found.append(explain(predictor, graphs, device="cpu"))
    for one, other in zip(*found, strict=True):
        assert_close(one.node_importance, other.node_importance, tolerance=1e-5)
        assert_close(one.edge_importance, other.edge_importance, tolerance=1e-5)
        np.testing.assert_array_equal(one.critical_nodes, other.critical_nodes)
        assert one.output == pytest.approx(other.output, rel=1e-5, abs=1e-5)
        assert (one.trace is None) == (other.trace is None)


def assert_permuted(graphs: Graphs, predictor: Model, technique: Technique, seed: int, tolerance: float) -> None:
    """Importances, relative to the graph's largest, move along with the nodes and edges; nothing else changes."""
    relabelled, new = relabel(graphs, seed)
    chosen: dict[str, Any] = {"attention_threshold": 0.0, "select": "threshold", "threshold": 0.3}
    one, other = (explain_by(predictor, some, technique, **chosen) for some in (graphs, relabelled))
    for g, (before, after) in enumerate(zip(one, other, strict=True)):
        inner = new[graphs.node_ptr[g] : graphs.node_ptr[g + 1]] - graphs.node_ptr[g]
        largest = np.abs([*before.node_importance, *before.edge_importance, 1e-3]).max()
        close = partial(np.testing.assert_allclose, rtol=0, atol=tolerance * largest)
        close(after.node_importance[inner], before.node_importance)
        of_edge = dict(zip(map(tuple, after.graph.edges.tolist()), after.edge_importance.tolist(), strict=True))
        close([of_edge[min(u, v), max(u, v)] for u, v in inner[before.graph.edges].tolist()], before.edge_importance)
        assert after.explained == before.explained
        assert after.probability == pytest.approx(before.probability, abs=1e-4)
        border = 0.3 * before.node_importance.max(initial=0)
        if (np.abs(before.node_importance - border) > 2 * tolerance * largest).all():
            assert sorted(inner[before.critical_nodes].tolist()) == after.critical_nodes.tolist()


@TECHNIQUES
@pytest.mark.parametrize("readout", ["max", "mean", "sort"])
@pytest.mark.parametrize("rings", [False, True], ids=["trees", "rings"])
def test_renumbering_a_graph_permutes_its_importances(technique: Technique, readout: str, rings: bool) -> None:
    classes: dict[str, Any] = {"target": np.arange(25) % 2, "class_names": ("no", "yes")}
    trees = random_trees(25, nodes=12, seed=0, **classes)
    graphs = random_connected(25, nodes=9, extra=5, seed=0, **classes) if rings else trees
    predictor = predictor_for(graphs, readout=readout, width=8, slots=5, k=4)
    assert_permuted(graphs, predictor, technique, seed=1 + rings, tolerance=1e-3)


@pytest.mark.parametrize("technique", ["relevance", "paper", "gradient", "occlusion"])
@settings(max_examples=15)
@given(graphs=random_graphs(max_graphs=2, max_nodes=6, classes=True), seed=st.integers(0, 20))
def test_renumbering_small_graphs_of_every_kind_permutes_their_importances(
    technique: Technique, graphs: Graphs, seed: int
) -> None:
    assert_permuted(graphs, predictor_for(graphs, slots=5, k=4), technique, seed=seed, tolerance=1e-2)


def test_labels_that_the_model_never_saw_do_not_break_a_symmetry_it_sees() -> None:
    """Two leaves of names unknown to the model: to it they are alike, so node numbers must not tell them apart."""
    known = random_trees(6, nodes=6, seed=0, target=np.arange(6) % 2, class_names=("no", "yes"))
    predictor = predictor_for(known, width=8)
    star = one_graph(3, [(0, 1), (0, 2)], node_label=["C", "Xe", "Kr"], edge_label=["single"] * 2)
    for technique in ("relevance", "gradient"):
        (structure,) = explain_by(predictor, star, technique)
        assert np.abs(structure.node_importance).max() > 0
        assert structure.node_importance[1] == pytest.approx(structure.node_importance[2], rel=1e-5)


def test_edges_between_nodes_that_are_alike_share_alike_only_if_they_are_alike_too() -> None:
    """Rings with alternating bonds, and a pair of nodes with loops: all nodes alike, the edges of two kinds."""
    bonds = one_graph(6, cycle(*range(6)), edge_label=["single", "double"] * 3)
    loops = one_graph(2, [(0, 0), (0, 1), (1, 1)])
    for graphs, kinds in ((bonds, np.array(bonds[0].edge_label)), (loops, np.array(["loop", "edge", "loop"]))):
        graphs = graphs.replace(target=np.array([0]), class_names=("no", "yes"))
        (structure,) = explain_by(predictor_for(graphs, width=8, seed=1), graphs, "relevance")
        assert structure.node_importance == pytest.approx(structure.node_importance[0])
        by_kind = [structure.edge_importance[kinds == kind] for kind in np.unique(kinds)]
        for values in by_kind:
            assert values == pytest.approx(values[0], rel=1e-6)
        assert by_kind[0][0] != pytest.approx(by_kind[1][0], rel=1e-3)


@TECHNIQUES
def test_two_runs_give_the_same_and_which_graphs_are_explained_together_does_not_matter(technique: Technique) -> None:
    trees = random_trees(8, nodes=9, seed=4, target=np.arange(8) % 2, class_names=("no", "yes"))
    predictor = predictor_for(trees, readout="mean+max")
    attention = fit_attention(predictor, trees, epochs=2)
    config = ExplainConfig(technique=technique, steps=4)
    together, again = (explain(predictor, trees, config, attention=attention) for _ in range(2))
    assert [one.to_plain(trace=True) for one in together] == [one.to_plain(trace=True) for one in again]
    for number, one in enumerate(together):
        (alone,) = explain(predictor, trees[[number]], config, attention=attention)
        assert_close(alone.node_importance, one.node_importance, tolerance=1e-5)
        assert_close(alone.edge_importance, one.edge_importance, tolerance=1e-5)
        assert alone.predicted == one.predicted
        np.testing.assert_array_equal(alone.critical_nodes, one.critical_nodes)


def test_little_is_computed_on_one_thread_and_much_on_as_many_as_there_are() -> None:
    trees = random_trees(80, nodes=9, seed=4, target=np.arange(80) % 2, class_names=("no", "yes"))
    predictor, before = predictor_for(trees), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for graphs, threads in ((trees[:3], 1), (trees, 2)):
            seen: list[int] = []

            def note(_: int, seen: list[int] = seen) -> None:
                seen.append(torch.get_num_threads())

            explain(predictor, graphs, device="cpu", report=note)
            assert set(seen) == {threads}
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_by_default_contributions_are_found_and_a_connected_part_chosen(trained: Model) -> None:
    one = explain(trained, alcohols())
    other = explain_by(trained, alcohols(), "contributions", select="connected", steps=3)
    assert [each.to_plain(trace=True) for each in one] == [each.to_plain(trace=True) for each in other]


def test_huge_graphs_among_others_are_explained_in_their_order_and_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ring, hub = one_graph(9, cycle(*range(9))), one_graph(41, [(0, leaf) for leaf in range(1, 41)])
    graphs = Graphs.concat([ring, hub, ring])
    predictor = predictor_for(graphs, outputs=2, networks=2, jump=True, readout="mean+log+max")
    expected = explain(predictor, graphs, device="cpu")
    monkeypatch.setattr("egocnn.model.HUGE", 30)
    found = explain(predictor, graphs, device="cpu")
    for one, other in zip(found, expected, strict=True):
        assert (one.name, len(one.node_importance)) == (other.name, other.graph.n_nodes)
        assert (one.output, one.base) == pytest.approx((other.output, other.base), abs=1e-4)
        assert one.base + one.node_importance.sum() == pytest.approx(one.output, abs=1e-5)
    assert [structure.fidelity is None for structure in found] == [False, True, False]
    leaves = found[1].node_importance[1:]
    assert np.ptp(leaves) <= 1e-9 * np.abs(leaves).max()  # nothing tells them apart
    assert found[1].critical_nodes.tolist() in ([], [0])
