import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from egocnn.cli.commands.across.patterns import console_lines
from egocnn.cli.commands.demo import opening_first
from egocnn.data.read import read
from egocnn.explain.patterns import find_patterns
from egocnn.explain.structure import read_structures
from egocnn.model import Model
from tests.explain.patterns.made_up_structures import molecules
from tests.support.commands import Run, check_refused, printed, rows, told
from tests.support.tiny import ALCOHOLS, names_in


def test_explain_writes_the_page_the_figures_and_structures_that_keep_their_promise_to_scripts(
    run: Run, alcohol_run: Path, tmp_path: Path
) -> None:
    words = ("explain", alcohol_run, ALCOHOLS, "-o", tmp_path / "report", "--figures", "3", "--limit", "6")
    assert f"open {tmp_path / 'report' / 'index.html'}" in told(run, *words)
    assert (tmp_path / "report" / "index.html").stat().st_size > 100_000
    assert len(list((tmp_path / "report" / "figures").glob("*.svg"))) == 3
    structures = list(read_structures(tmp_path / "report" / "structures.jsonl"))
    graphs = read(ALCOHOLS)[:6]
    assert [s.name for s in structures] == list(graphs.names)
    assert [s.graph.n_nodes for s in structures] == graphs.node_counts.tolist()
    probabilities = Model.load(alcohol_run).probabilities(graphs, device="cpu")
    for number, line in enumerate((tmp_path / "report" / "structures.jsonl").read_text().splitlines()):
        plain, graph = json.loads(line), graphs[number]
        assert plain["true"] == graph.target
        assert plain["base"] + sum(plain["node_importance"]) == pytest.approx(plain["output"], rel=1e-6)
        assert plain["class"] == plain["predicted"]
        assert plain["probability"] == pytest.approx(probabilities[number].max(), abs=1e-5)
        assert len(plain["node_importance"]) == graph.n_nodes
        assert [[u, v] for u, v, _ in plain["edge_importance"]] == graph.edges.tolist()
        assert set(plain["critical_nodes"]) <= set(range(graph.n_nodes))
        assert all([u, v] in graph.edges.tolist() for u, v in plain["critical_edges"])
        assert set(plain["fidelity"]) == {"removed", "kept", "evidence_lost", "evidence_kept"}
        assert plain["base"] + plain["for"] + plain["against"] == pytest.approx(plain["output"], abs=1e-3)
        assert sum(plain["node_importance"]) == pytest.approx(plain["for"] + plain["against"], abs=1e-6)


def test_the_console_sums_up_in_evidence_and_says_where_nothing_stands_out(
    run: Run, alcohol_run: Path, tmp_path: Path
) -> None:
    words = ("explain", alcohol_run, ALCOHOLS, "--limit", "6", "--figures", "0")
    # a part that may hold no node is empty, one that must hold half of all is not
    nothing = told(run, *words, "--largest", "0", "--evidence", "1", "-o", tmp_path / "a", "--show", "2")
    assert nothing.count("no part of this molecule stands out for ") == 2
    assert nothing.count(" log-odds\n") == 2
    assert "In 100% of the molecules nothing stands out." in nothing
    assert not any(word in nothing for word in ("of the evidence", "critical:", "nan", "None"))
    some = told(run, *words, "--select", "top", "--top", "2", "-o", tmp_path / "b")
    assert "Critical structures keep " in some
    assert "(medians over the molecules that have one)" in some
    assert "nothing stands out." not in some
    assert f"6 molecules explained: open {tmp_path / 'b' / 'index.html'}" in some
    assert not (tmp_path / "b" / "figures").exists()


def test_explaining_another_class_turns_what_speaks_for_into_what_speaks_against(
    run: Run, alcohol_run: Path, tmp_path: Path
) -> None:
    found = {}
    for name in ("alkane", "alcohol"):
        words = ("--class", name, "--against", "1", "--gamma", "0", "--technique", "gradient")
        assert run("explain", alcohol_run, ALCOHOLS, "-o", tmp_path / name, "--limit", "3", *words)[0] == 0
        found[name] = [s.node_importance for s in read_structures(tmp_path / name / "structures.jsonl")]
    for one, other in zip(found["alkane"], found["alcohol"], strict=True):
        np.testing.assert_allclose(one, -other, atol=1e-4 * np.abs(one).max())


def test_the_papers_technique_leaves_its_attention_beside_the_model_and_finds_it_again(
    run: Run, alcohol_run: Path, tmp_path: Path
) -> None:
    model = shutil.copytree(alcohol_run, tmp_path / "run")
    words = ("explain", model, ALCOHOLS, "--technique", "paper", "--limit", "5", "--figures", "0")
    assert run(*words, "-o", tmp_path / "a")[0] == 0
    kept = (model / "attention.safetensors").read_bytes()
    assert run(*words, "-o", tmp_path / "b")[0] == 0
    assert (model / "attention.safetensors").read_bytes() == kept
    assert (tmp_path / "a/structures.jsonl").read_bytes() == (tmp_path / "b/structures.jsonl").read_bytes()


def test_an_earlier_report_is_replaced_and_a_folder_that_holds_something_else_is_left_alone(
    run: Run, alcohol_run: Path, tmp_path: Path
) -> None:
    for limit in (3, 2):
        words = ("explain", alcohol_run, ALCOHOLS, "-o", tmp_path / "report", "--limit", limit, "--json", "--quiet")
        summary = json.loads(printed(run, *words))
        assert summary["graphs"] == len((tmp_path / "report" / "structures.jsonl").read_text().splitlines()) == limit
        assert 0 <= summary["accuracy"] <= 1
        assert Path(summary["page"]).exists()
        assert len(names_in(tmp_path / "report" / "figures")) == limit
    (tmp_path / "thesis.txt").write_text("years of work")
    check_refused(run, "holds no earlier report", "explain", alcohol_run, ALCOHOLS, "-o", tmp_path)
    assert names_in(tmp_path) == ["report", "thesis.txt"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--class", "ketone"), "knows no class 'ketone'"),
        (("--threshold", "2"), "threshold must be between 0 and 1"),
        (("--technique", "magic"), "invalid choice"),
        (("--top", "0"), "top must be at least 1"),
    ],
)
def test_what_cannot_be_explained_is_refused_with_one_line(
    run: Run, alcohol_run: Path, tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    check_refused(run, reason, "explain", alcohol_run, ALCOHOLS, "-o", tmp_path / "report", *words)
    assert not (tmp_path / "report").exists()


def test_the_console_tells_as_findings_only_patterns_that_are_commoner_in_their_class() -> None:
    chains = [f"{'C' * n}O" for n in range(2, 14)]
    found = [*molecules(chains, "[OH]", "alcohol"), *molecules(["C" * n for n in range(2, 14)], "CC", "alkane")]
    none = np.zeros(0, np.int64)
    hollow = [replace(one, critical_nodes=none, critical_edges=none) for one in found[-3:]]
    patterns = find_patterns([*found[:-3], *hollow])
    assert any(one.lift <= 1 for one in patterns)
    lines = console_lines(patterns, [*found[:-3], *hollow], "molecules")
    assert lines[0].startswith("alcohol: OH group (hydroxyl): in 100% of class alcohol")
    text = "\n".join(lines)
    for one in patterns:
        assert (str(one) in text) == (one.lift > 1)
    assert lines[-2:] == [
        f"no commoner in their class though they recur: {sum(one.lift <= 1 for one in patterns)}, listed on the page",
        "nothing stands out in 3 of 12 molecules of class alkane",
    ]


def test_the_demo_opens_with_an_alcohol_that_is_predicted_right_and_has_a_structure() -> None:
    alkanes = molecules(["CC", "CCC"], "CC", "alkane")
    empty, right = molecules(["CO", "CCO"], "[OH]", "alcohol")
    none = np.zeros(0, np.int64)
    empty = replace(empty, critical_nodes=none, critical_edges=none)
    wrong = replace(right, predicted="alkane", explained="alkane")
    given = [alkanes[0], empty, wrong, right, alkanes[1]]
    assert [given.index(one) for one in opening_first(given)] == [3, 0, 1, 2, 4]
    assert opening_first(given[:3]) == given[:3]
    assert opening_first([]) == []


def test_patterns_come_with_a_page_and_sentences(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    words = ("patterns", alcohol_run, ALCOHOLS, "-o", tmp_path / "patterns", "--min-support", "2")
    assert "pattern" in told(run, *words)
    assert (tmp_path / "patterns" / "index.html").exists()
    assert isinstance(json.loads((tmp_path / "patterns" / "patterns.json").read_text()), (list, dict))


def test_pairs_are_written_as_tables_and_a_page_and_summed_up(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    words = ("pairs", alcohol_run, ALCOHOLS, "-o", tmp_path / "pairs")
    summary = json.loads(printed(run, *words, "--json", "--quiet", "--show", "3"))
    found = rows(tmp_path / "pairs" / "pairs.csv")
    assert len(found) == summary["pairs"] == summary["pairs_with_truth"] > 0
    assert summary["class"] == "alcohol"
    assert 0 < summary["trained"] < summary["molecules"]
    assert sum(row["true_a"] != row["true_b"] for row in found) == summary["cliffs"] > 0
    shown = told(run, *words, "--format", "jsonl")
    of_all = f"{summary['trained']} of these {summary['molecules']} molecules"
    assert f"The model was trained on {of_all}: what it predicts of them flatters it." in shown
    assert f"open {tmp_path / 'pairs' / 'index.html'}" in shown
    exact = [json.loads(line) for line in (tmp_path / "pairs" / "pairs.jsonl").read_text().splitlines()]
    for row, short in zip(exact, found, strict=True):
        assert row["predicted_change"] == pytest.approx(row["predicted_b"] - row["predicted_a"], abs=1e-9)
        assert float(short["predicted_change"]) == float(f"{row['predicted_change']:.6g}")
    check_refused(run, "no two of 1 molecules", "pairs", alcohol_run, "CCO", "-o", tmp_path / "none", "--quiet")
