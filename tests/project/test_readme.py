"""What the README and docs/measured.md promise: Python that runs as it stands, figures that stand in results/."""

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LARGEST = 8_000
"""Bytes of the README: picture, install, ten lines, five commands, one table, links."""

NUMBER = re.compile(r"\d+\.\d+|\d+")
REPORTED = {
    "16 classifications, node ROC AUC": "node_auc",
    "their edges, pooled ROC AUC": "pooled_edge_auc",
    "4 regressions, contributions, Pearson": "pearson",
    "critical structures, overlap with the true one (Jaccard)": "structure_jaccard",
    "critical structures that are connected": "connected",
    "graphs without a structure, none marked": "nothing_chosen",
}
"""A row of the README -> the score, of ours in truths_reporting_pared.json, of the peer in truths_reporting.json."""


def results(name: str) -> Any:
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))


def table_rows(text: str) -> Iterator[list[str]]:
    """The cells of every row of every table, headings left out."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("|") and not line.startswith("|---") and not lines[number + 1].startswith("|---"):
            yield [cell.strip(" *") for cell in line.strip("|").split("|")]


def shows(cell: str, *values: float) -> bool:
    """Whether the numbers of a cell are these, each rounded to as many digits as are shown of it."""
    shown = NUMBER.findall(cell)
    return len(shown) == len(values) and all(
        text == f"{value:.{len(text.partition('.')[2])}f}" for text, value in zip(shown, values, strict=True)
    )


def test_the_readme_is_short_and_its_quickstart_runs_as_it_stands(data_folder: Path, tmp_path: Path) -> None:
    assert len(README.encode()) <= LARGEST
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert [len([line for line in code.splitlines() if line.strip()]) for code in blocks] == [3, 10]
    rings, groups = ("c1ccc({})cc1", "c1ccc2cc({})ccc2c1", "C1CCC({})CC1"), ("C", "O", "N", "Cl", "[N+](=O)[O-]", "C#N")
    rows = [f"{ring.format(group)},{'N+' in group and ring[0] == 'c'}" for ring in rings for group in groups]
    (tmp_path / "molecules.csv").write_text("\n".join(["smiles,toxic", *rows, ""]), encoding="utf-8")
    assert (data_folder / "tu" / "MUTAG.zip").exists()
    with chdir(tmp_path):
        exec("".join(blocks), {"__name__": "__main__"})
    for written in ("nitrotoluene.svg", "report/index.html", "runs/mutag/model.safetensors"):
        assert (tmp_path / written).exists(), written


def test_both_make_commands_and_five_commands_of_ours_are_shown() -> None:
    from egocnn.cli import main

    assert "make demo" in README
    assert "make test" in README
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    commands = [command for _, block in blocks for command in re.findall(r"^egocnn (\w+)", block, re.MULTILINE)]
    assert len(commands) == 5
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0, command


def test_every_link_and_picture_is_a_file_of_the_project_at_its_full_address() -> None:
    """A package index shows the README without the files beside it."""
    home = PROJECT["urls"]["Source"]
    raw = home.replace("https://github.com/", "https://raw.githubusercontent.com/") + "/main/"
    targets = re.findall(r"\]\(([^)]+)\)", README)
    assert len(targets) > 10
    for target in targets:
        path = target.removeprefix(f"{home}/blob/main/").removeprefix(raw)
        assert path != target, f"{target} does not begin with the project's address"
        assert (ROOT / path).is_file(), target
        assert target.startswith(raw) == path.endswith((".png", ".svg")), target
    assert PROJECT["urls"].keys() >= {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
    for address in PROJECT["urls"].values():
        assert address.startswith(home)
        assert "/blob/main/" not in address or (ROOT / address.partition("/blob/main/")[2]).is_file(), address


def test_every_figure_in_the_table_of_the_readme_stands_in_results() -> None:
    reported, peers = (results(f"truths_reporting{end}")["summary"]["reporting"] for end in ("_pared", ""))
    scores = [row for name in ("table2", "table3") for row in results(name)["rows"]]
    gin = {row["data"]: row["mean"] for row in scores if row["model"] == "GIN"}
    rows = list(table_rows(README))
    assert shows("85.1 (79.9 to 90.2)", 85.06, 79.93, 90.19)  # a figure that is not so is noticed
    assert not shows("85.2 (79.9 to 90.2)", 85.06, 79.93, 90.19)
    assert not shows("85.1", 85.06, 79.93)
    assert len(rows) > len(REPORTED)
    for title, ours, beside, _ in rows:
        if title in REPORTED:
            score = REPORTED[title]
            assert shows(ours, reported["test"][score]["mean"], reported["test"][score]["worst"]), title
            peer = peers["GINE, occlusion"].get(score)
            assert beside == "-" if peer is None else shows(beside, peer["mean"], peer["worst"]), title
        else:
            data = title.removesuffix(", accuracy")
            found = results(f"default/{data}")
            assert shows(ours, *(100 * value for value in (found["mean"], *found["interval"]))), title
            assert beside.endswith(" GIN")
            assert shows(beside, gin[data]), title


@pytest.mark.parametrize("name", ["alcohols", "isomers", "methylalkanes", "molecules"])
def test_the_figures_of_an_experiment_are_those_that_its_command_wrote(name: str) -> None:
    for row in results(name)["rows"]:
        assert f"{row['mean']:.3f}" in MEASURED, f"{row['data']}, {row['model']}"
        assert f"{row['min']:.3f}" in MEASURED, f"{row['data']}, {row['model']}"


def test_the_figures_about_explanations_are_those_that_the_commands_wrote() -> None:
    rows = {(row["data"], row["model"], row["technique"]): row["scores"] for row in results("explain")["rows"]}
    shown = [
        *(("benzene", "node_auc", 4), ("logic7", "node_auc", 3), ("alcohols", "node_precision", 3)),
        *(("isomers", "unmatched_above_matched", 3), ("mutagenicity-marked", "edge_auc", 3)),
        *(("mutagenicity", "edge_auc", 3), ("mutagenicity", "pooled_edge_auc", 3)),
    ]
    for data, score, digits in shown:
        spread = rows[data, "egocnn", "relevance"][score]
        wanted = f"{spread['mean']:.{digits}f}", f"({spread['min']:.{digits}f})"
        assert any(all(text in line for text in wanted) for line in MEASURED.splitlines()), (data, score, wanted)
    assert f"{results('explain_speed')['times_faster_together']:.0f} times faster than GNNExplainer" in MEASURED


def test_the_figures_of_the_papers_tables_are_those_that_the_commands_wrote() -> None:
    scores = {(row["data"], row["model"]): row for name in ("table2", "table3") for row in results(name)["rows"]}
    sets = dict.fromkeys(data for data, _ in scores)
    rows = {cells[0]: cells for cells in table_rows(MEASURED) if cells[0] in sets}
    assert rows.keys() == sets.keys()
    networks = ("Structure2vec", "DCNN", "Patchy-San", "1-head GAT")
    for data, (_, printed, papers, alone, averaged, gin, other, kernel, _) in rows.items():
        ours = scores[data, "Ego-CNN, our settings, averaged"]
        assert shows(printed, ours["published"]), data
        assert shows(papers, scores[data, "Ego-CNN, the paper's settings"]["mean"]), data
        assert shows(alone, scores[data, "Ego-CNN, our settings"]["mean"]), data
        assert shows(averaged.replace("95%", ""), ours["mean"], *ours["interval"]), data
        assert shows(gin, scores[data, "GIN"]["mean"]), data
        others = {name: scores[data, name]["mean"] or 0 for name in networks if (data, name) in scores}
        named = other.partition(" ")[2]
        assert others[named] == max(others.values()), (data, others)
        assert shows(other.partition(" ")[0], others[named]), data
        assert kernel == "-" or shows(kernel, scores[data, "WL kernel"]["mean"]), data
