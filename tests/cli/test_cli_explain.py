from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from egocnn.data.read import read
from egocnn.explain.structure import read_structures
from egocnn.model import Model
from tests.support.commands import Run
from tests.support.tiny import ALCOHOLS


def test_explain_writes_the_page_the_structures_and_the_figures(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    code, out, _ = run("explain", alcohol_run, ALCOHOLS, "-o", tmp_path / "report", "--figures", "3", "--limit", "6")
    assert code == 0
    assert f"open {tmp_path / 'report' / 'index.html'}" in out
    assert (tmp_path / "report" / "index.html").stat().st_size > 100_000
    assert len(list((tmp_path / "report" / "figures").glob("*.svg"))) == 3
    structures = list(read_structures(tmp_path / "report" / "structures.jsonl"))
    graphs = read(ALCOHOLS)[:6]
    assert [s.name for s in structures] == list(graphs.names)
    assert [s.graph.n_nodes for s in structures] == graphs.node_counts.tolist()


def test_every_line_of_structures_keeps_its_promise_to_scripts(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    run("explain", alcohol_run, ALCOHOLS, "-o", tmp_path, "--limit", "4", "--figures", "0")
    graphs = read(ALCOHOLS)[:4]
    probabilities = Model.load(alcohol_run).probabilities(graphs, device="cpu")
    for number, line in enumerate((tmp_path / "structures.jsonl").read_text().splitlines()):
        plain, graph = json.loads(line), graphs[number]
        assert plain["true"] == graph.target
        assert plain["class"] == plain["predicted"]
        assert plain["probability"] == pytest.approx(probabilities[number].max(), abs=1e-5)
        assert len(plain["node_importance"]) == graph.n_nodes
        assert [[u, v] for u, v, _ in plain["edge_importance"]] == graph.edges.tolist()
        assert set(plain["critical_nodes"]) <= set(range(graph.n_nodes))
        assert all([u, v] in graph.edges.tolist() for u, v in plain["critical_edges"])
        assert set(plain["fidelity"]) == {"removed", "kept"}
    assert not (tmp_path / "figures").exists()


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
    words = ("explain", alcohol_run, ALCOHOLS, "--technique", "paper", "--limit", "5", "--figures", "0")
    assert run(*words, "-o", tmp_path / "a")[0] == 0
    kept = (alcohol_run / "attention.safetensors").read_bytes()
    assert run(*words, "-o", tmp_path / "b")[0] == 0
    assert (alcohol_run / "attention.safetensors").read_bytes() == kept
    assert (tmp_path / "a/structures.jsonl").read_bytes() == (tmp_path / "b/structures.jsonl").read_bytes()


def test_explain_with_json_prints_one_object_with_the_summary(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    _, out, _ = run("explain", alcohol_run, ALCOHOLS, "-o", tmp_path, "--limit", "4", "--json")
    summary = json.loads(out)
    assert summary["graphs"] == 4
    assert 0 <= summary["accuracy"] <= 1
    assert Path(summary["page"]).exists()


def test_a_folder_that_holds_something_else_is_left_alone(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    code, _, err = run("explain", alcohol_run, ALCOHOLS, "-o", tmp_path)
    assert code == 2
    assert "holds no earlier report" in err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_earlier_report_is_replaced(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    for limit in ("2", "3"):
        assert run("explain", alcohol_run, ALCOHOLS, "-o", tmp_path, "--limit", limit)[0] == 0
    assert len((tmp_path / "structures.jsonl").read_text().splitlines()) == 3


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
    code, _, err = run("explain", alcohol_run, ALCOHOLS, "-o", tmp_path / "report", *words)
    assert code == 2
    assert reason in err
    assert not (tmp_path / "report").exists()


def test_patterns_come_with_a_page_and_sentences(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    code, out, _ = run("patterns", alcohol_run, ALCOHOLS, "-o", tmp_path / "patterns", "--min-support", "2")
    assert code == 0
    assert "pattern" in out
    assert (tmp_path / "patterns" / "index.html").exists()
    assert isinstance(json.loads((tmp_path / "patterns" / "patterns.json").read_text()), (list, dict))


def test_the_list_of_experiments_names_explanations_and_figures(run: Run) -> None:
    _, out, _ = run("reproduce", "--list")
    for name in ("alcohols", "explain", "patterns", "figure5", "figure6"):
        assert name in out
