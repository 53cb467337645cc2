"""Measures of explanations without a truth, on hand-made structures with known answers, and of functional groups."""

import csv
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("rdkit")

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.read import read
from egocnn.data.sources.smiles import from_smiles
from egocnn.encode.encoder import Encoder
from egocnn.errors import DataError
from egocnn.explain import explain
from egocnn.explain.structure import CriticalStructure, Fidelity
from egocnn.model import Model
from lab.bench.real import groups, measures
from tests.support.samples import one_graph


def path(n_nodes: int) -> Graph:
    """Nodes one after the other."""
    return one_graph(n_nodes, [(n, n + 1) for n in range(n_nodes - 1)])[0]


def structure(
    contributions: Sequence[float],
    critical: Sequence[int] = (),
    *,
    graph: Graph | None = None,
    base: float = 0.0,
    output: float | None = None,
    explained: str | None = "1",
    evidence: tuple[float | None, float | None] | None = None,
) -> CriticalStructure:
    """On a path, unless told; the output is what adds up, unless told; ``evidence``: kept and lost by presence."""
    nodes = np.array(contributions, np.float64)
    graph = graph or path(len(nodes))
    kept, lost = evidence or (None, None)
    return CriticalStructure(
        graph=graph,
        predicted=explained or 0.0,
        probability=None,
        explained=explained,
        technique="contributions",
        base=base,
        output=base + float(nodes.sum()) if output is None else output,
        node_importance=nodes,
        edge_importance=np.zeros(len(graph.edges)),
        critical_nodes=np.array(critical, np.int64),
        critical_edges=np.zeros(0, np.int64),
        fidelity=None if evidence is None else Fidelity(0.0, 0.0, lost, kept),
    )


def test_scores_sizes_gaps_and_evidence_are_those_that_a_hand_computes() -> None:
    likely = np.array([0.1, 0.6, 0.4, 0.9])
    scores = measures.scores_of_predictions(np.stack([1 - likely, likely], axis=1), np.array([0, 0, 1, 1]))
    assert scores == {"roc_auc": 0.75, "accuracy": 0.5}
    scores = measures.scores_of_predictions(np.array([1.0, 2.0]), np.array([4.0, 6.0]))
    assert scores == {"rmse": pytest.approx(np.sqrt((9 + 16) / 2)), "r2": pytest.approx(1 - 25 / 2)}
    found = [structure([1.0] * 4, nodes) for nodes in ([], [], [1], [2], [0, 2], [1, 2, 3])]
    medians = {"share_of_nodes": 0.25, "share_of_nodes_where_any": 0.375}
    assert measures.size_scores(found) == {**medians, "empty": pytest.approx(1 / 3), "connected": 3 / 4}
    nothing = {"share_of_nodes": 0.0, "share_of_nodes_where_any": None, "empty": 1.0, "connected": None}
    assert measures.size_scores([structure([1.0, 1.0])]) == nothing
    found = [structure([100.0, 4.0, -6.0, 0.0]), structure([-0.1, 0.05, 0.004, 0.006])]
    assert measures.sign_shares(found) == {"nodes_for": 3 / 8, "nodes_against": 2 / 8}
    silent = [structure([0.0, 0.0]), structure([1.0, -1.0])]  # nodes that contribute nothing still count as nodes
    assert measures.sign_shares(silent) == {"nodes_for": 0.25, "nodes_against": 0.25}
    found = [structure([1.0, 2.0], base=1.0), *(structure([1.0], base=0.0, output=output) for output in (0.5, 1.25))]
    assert measures.gap_scores(found) == {"gap": 0.5, "gap_of_range": pytest.approx(0.5 / 3.5)}
    shares = [(0.9, 0.5), (0.7, 0.6), (0.8, 0.1), (None, None)]
    found = [structure([1.0], [0], evidence=each) for each in shares] + [structure([1.0], [], evidence=(0.0, 0.0))]
    assert measures.evidence_by_presence(found) == {"kept": 0.8, "lost": 0.5}


def test_evidence_by_cutting_asks_about_the_part_alone_and_about_the_rest_where_there_is_any() -> None:
    graphs = Graphs.from_edges(node_counts=[4, 2], edges=np.array([[0, 1], [1, 2], [2, 3], [4, 5]]))
    asked: list[list[int]] = []

    def square_of_size(cut: Graphs) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        asked.append(cut.node_counts.tolist())
        return 1.0 + cut.node_counts.astype(np.float64) ** 2

    found = [structure([1.0] * 4, [3], base=1.0, output=17.0), structure([1.0] * 2, [], base=1.0, output=5.0)]
    scores = measures.evidence_by_cutting(graphs, found, square_of_size)
    assert asked == [[1, 0], [3, 2]]
    assert scores == {"kept_cut": 1 / 16, "lost_cut": (16 - 9) / 16}
    without = [structure([1.0, -1.0], [0], base=2.0, output=2.0)]
    assert measures.evidence_by_cutting(graphs[1:], without, square_of_size) == {"kept_cut": None, "lost_cut": None}


@pytest.mark.parametrize("task", ["class", "value"])
def test_whole_graphs_give_the_output_that_was_explained_and_what_is_left_may_be_empty(task: str) -> None:
    graphs = read("compounds:alcohols:sizes=3-5,per_size=2")
    if task == "value":
        graphs = graphs.replace(target=np.linspace(-3, 9, len(graphs)), class_names=())
    config = ModelConfig(width=8, hidden=8, depth=2)
    torch.manual_seed(0)
    model = replace(Model.build(config, Encoder.fit(graphs, config)), temperature=2.5)
    classes = ["alkane", "alcohol"] * (len(graphs) // 2) if task == "class" else None
    found = explain(model, graphs, classes=classes, fidelity=False, device="cpu")
    outputs = measures.explained_outputs(model, graphs, found, device="cpu")
    np.testing.assert_allclose(outputs, [one.output for one in found], rtol=1e-4, atol=1e-5)
    every = [replace(one, critical_nodes=np.arange(one.graph.n_nodes)) for one in found]
    scores = measures.evidence_by_cutting(
        graphs, every, lambda cut: measures.explained_outputs(model, cut, every, device="cpu")
    )
    assert scores["kept_cut"] == pytest.approx(1, abs=1e-3)
    assert np.isfinite(scores["lost_cut"] or 0)


def test_only_the_order_of_contributions_counts_for_the_rank_correlation_and_equal_ones_share_their_rank() -> None:
    one = np.array([0.1, 0.2, 5.0, 7.0])
    for other, wanted in ((np.exp(one), 1), (-one, -1), (np.array([1.0, 0.0, 2.0, 3.0]), 0.8)):
        assert measures.spearman(one, other) == pytest.approx(wanted)
    expected = np.corrcoef([1.5, 1.5, 3.0], [1.0, 2.0, 3.0])[0, 1]
    assert measures.spearman(np.array([2.0, 2.0, 9.0]), np.array([-1.0, 0.0, 1.0])) == pytest.approx(expected)


def test_means_leave_out_graphs_without_an_order_and_trainings_without_the_number() -> None:
    one = [structure([1.0, 2.0, 3.0]), structure([1.0, 2.0]), structure([1.0, 1.0])]
    other = [structure([1.0, 2.0, 3.0]), structure([2.0, 1.0]), structure([1.0, 2.0])]
    assert measures.agreement(one, other) == pytest.approx(0)
    assert measures.agreement(one[2:], other[2:]) is None
    rows: list[dict[str, float | None]] = [{"kept": kept, "lost": None} for kept in (1.0, 2.0, None)]
    assert measures.mean_of(rows) == {"kept": 1.5, "lost": None}


def explained(smiles: str, *contributions: float) -> CriticalStructure:
    return structure(contributions, graph=from_smiles([smiles])[0], explained=None)


def test_a_group_sums_over_its_atoms_once_each_and_averages_over_the_molecules_that_have_it() -> None:
    found = [explained("CCO", 10, 20, 0.5), explained("OCCO", 1, 20, 30, 2), explained("CCC", 5, 5, 5)]
    asked = [
        groups.Expectation(towards=None, group=name, smarts="", sign=-1) for name in ("OH group (hydroxyl)", "iodine")
    ]
    hydroxyl, iodine = groups.group_contributions(found, asked)
    assert (hydroxyl.molecules, hydroxyl.mean, hydroxyl.is_as_expected) == (2, (0.5 + 3.0) / 2, False)
    assert (iodine.molecules, iodine.mean, iodine.is_as_expected) == (0, None, None)
    chain = next(
        each for each in groups.expectations("lipo") if each.group == "alkyl chain"
    )  # which matches several times
    assert groups.group_contributions([explained("CCCCC", 1, 2, 4, 8, 16)], [chain])[0].mean == 31


@pytest.mark.parametrize(
    ("mean", "expected", "is_so"), [(0.1, 1, True), (-0.1, -1, True), (0.1, -1, False), (0, 1, False)]
)
def test_a_contribution_is_as_expected_if_it_has_the_sign(mean: float, expected: int, is_so: bool) -> None:
    assert groups.GroupContribution(group="F", expected=expected, molecules=1, mean=mean).is_as_expected is is_so


@pytest.mark.parametrize(
    ("name", "group", "smiles", "atoms"),
    [
        ("lipo", "carboxylic acid", "CC(=O)O", [1, 2, 3]),
        ("lipo", "carboxylic acid", "CC(=O)[O-]", [1, 2, 3]),
        ("lipo", "carboxylic acid", "CC(=O)OC", []),
        ("lipo", "OH of an alcohol or phenol", "OCc1ccc(O)cc1C(=O)O", [0, 6]),
        ("lipo", "sulfonyl group", "CS(=O)(=O)N", [1, 2, 3]),
        ("lipo", "aliphatic primary amine", "NCCc1ccccc1N", [0]),
        ("lipo", "aliphatic primary amine", "CC(=O)N", []),
        ("lipo", "aliphatic tertiary amine", "CN(C)CC", [1]),
        ("lipo", "aliphatic tertiary amine", "CN(C)c1ccccc1", []),
        ("bbbp", "quaternary nitrogen", "C[N+](C)(C)C", [1]),
        ("bbbp", "quaternary nitrogen", "C[n+]1ccccc1", [1]),
        ("bbbp", "quaternary nitrogen", "C[N+](C)(C)[O-]", []),
        ("bbbp", "quaternary nitrogen", "C[NH+](C)C", []),
        ("bbbp", "nitro group", "C[N+](=O)[O-]", [1, 2, 3]),
        ("bbbp", "benzene ring", "Cc1ccccc1", [1, 2, 3, 4, 5, 6]),
        ("bbbp", "benzene ring", "C1CCCCC1", []),
        ("esol", "amine", "Nc1ccccc1", [0]),
        ("esol", "amine", "CNC(C)=O", []),
        ("esol", "alkyl chain", "CCCCO", [0, 1, 2]),
        ("esol", "alkyl chain", "C1CCCCC1", []),
        ("esol", "chlorine", "ClC(Cl)C", [0, 2]),
    ],
)
def test_the_patterns_mean_what_their_names_say(name: str, group: str, smiles: str, atoms: list[int]) -> None:
    from rdkit import Chem

    (expected,) = (each for each in groups.expectations(name) if each.group == group)
    assert groups.matched_atoms(Chem.MolFromSmiles(smiles), groups.patterns_of(expected)) == atoms


def test_every_group_that_was_written_down_has_a_pattern_and_stands_once_in_its_set() -> None:
    with groups.EXPECTED.open(encoding="utf-8", newline="") as file:
        names = {line["set"] for line in csv.DictReader(file)}
    assert names == {"lipo", "esol", "bbbp"}
    for name in names:
        rows = groups.expectations(name)
        assert len({each.group for each in rows}) == len(rows)
        assert all(groups.patterns_of(each) for each in rows)
        assert {each.sign for each in rows} == {1, -1}
        assert {each.towards for each in rows} == {"1" if name == "bbbp" else None}
    assert groups.expectations("bace") == []
    with pytest.raises(DataError, match="'unobtainium' has no SMARTS that parses"):
        groups.patterns_of(groups.Expectation(towards=None, group="unobtainium", smarts="", sign=1))
