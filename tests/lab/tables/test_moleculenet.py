"""MoleculeNet in one harness: splits, scores, cells that are kept, and the table of all that are there."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from egocnn.data.read import read
from egocnn.errors import ConfigError
from egocnn.files import write_json
from lab.tables.moleculenet import sets, systems, table
from lab.tables.moleculenet.sets import SETS, parts_of, score, with_splits
from lab.tables.moleculenet.table import MoleculeNetOptions, markdown, write_moleculenet
from tests.support.commands import rows
from tests.support.tiny import FLAGS

pytest.importorskip("rdkit")
TINY = {"ours": ("--epochs", "2", *FLAGS), "forest": ("--trees", "5"), "chemprop": ()}


def test_a_split_has_its_shares_and_never_tears_a_group() -> None:
    groups = [f"g{n % 150}" for n in range(900)] + ["largest"] * 100
    one, other = (parts_of(groups, seed) for seed in (0, 1))
    for parts in (one, other):
        sides = defaultdict(set)
        for group, part in zip(groups, parts, strict=True):
            sides[group].add(part)
        assert all(len(each) == 1 for each in sides.values())
        assert sides["largest"] == {"train"}  # it would be the whole test
        assert {part: int((parts == part).sum()) for part in ("train", "val", "test")} == pytest.approx(
            {"train": 800, "val": 100, "test": 100}, abs=12
        )
    assert (one != other).any()
    assert (one == parts_of(groups, 0)).all()


def test_rows_that_do_not_parse_have_no_split_and_copies_and_scaffolds_one_side() -> None:
    smiles = ["C1CC", *(f"{'C' * n}c1ccccc1" for n in range(1, 15)), *(f"{'C' * n}C1CCNC1" for n in range(1, 15))]
    smiles += ["C[C@H](N)O", "C[C@@H](N)O"]
    found = with_splits([{"smiles": text} for text in smiles])
    assert [row["smiles"] for row in found] == smiles[1:]
    assert all(found[-1][split] == found[-2][split] for split in sets.SPLITS)
    assert len({row["scaffold0"] for row in found if "c1" in row["smiles"]}) == 1


def test_scores_are_the_root_of_the_mean_square_and_the_mean_over_assays_that_have_both_classes() -> None:
    assert score(SETS["esol"], np.array([[1.0], [2.0]]), np.array([[1.0], [4.0]])) == pytest.approx(2**0.5)
    nan = np.nan
    truth = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [nan, 1.0, 0.0]])
    said = np.array([[0.1, 0.6, 0.3], [0.9, 0.5, 0.3], [0.0, 0.4, 0.3]])
    assert score(SETS["tox21"], truth, said) == pytest.approx((1.0 + 0.5) / 2)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of sixty molecules whose value counts their carbons, in one split; small networks and forests."""
    smiles = [f"{'C' * (n % 12 + 1)}{group}" for n, group in enumerate(["O", "N", "Cl", "c1ccccc1", "C(=O)O"] * 12)]
    lines = [f"{text},{text.count('C')}.5,train,train,train,train" for text in smiles]
    (tmp_path / "molecules").mkdir()
    text = "\n".join(["smiles,y,random0,scaffold0,random1,scaffold1", *lines, ""])
    (tmp_path / "molecules" / "esol.csv").write_text(text, encoding="utf-8")
    monkeypatch.setenv("EGOCNN_DATA", str(tmp_path))
    monkeypatch.setattr(systems, "QUICK", TINY)
    monkeypatch.setattr(table, "SPLITS", ("random0",))


def options(work: Path, **changes: Any) -> MoleculeNetOptions:
    usual: dict[str, Any] = {"sets": ["esol"], "systems": ["ours", "forest"], "seeds": 1, "quick": True}
    return MoleculeNetOptions(work=work, **usual | changes)


@pytest.mark.usefixtures("small")
def test_cells_are_trained_measured_kept_and_not_run_again_and_are_the_same_from_prepared_arrays(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    record = write_moleculenet(options(tmp_path / "work", jobs=2), folder=tmp_path / "out", say=said.append)
    assert len(said) == 2, said
    assert not any("failed" in line for line in said)
    for cell in record["cells"]:
        assert cell["cpu_seconds"] > 0.1
        assert cell["gigabytes"] > 0.01
    assert [row["system"] for row in record["rows"]][:3] == ["ours", "ours alone", "forest"]
    assert json.loads((tmp_path / "out" / "moleculenet.json").read_text())["rows"] == record["rows"]
    assert [row["system"] for row in rows(tmp_path / "out" / "moleculenet.csv")][:2] == ["ours", "ours alone"]
    again = write_moleculenet(options(tmp_path / "work"), folder=tmp_path / "out", say=said.append)
    assert len(said) == 2
    assert again["rows"] == record["rows"]
    # prepared arrays hold the split, and give the same score as the table
    arrays = options(tmp_path / "arrays", systems=["ours"], prepare_only=True)
    assert write_moleculenet(arrays, folder=tmp_path, say=lambda _: None)["rows"] == []
    (tmp_path / "arrays" / "data" / "esol.csv").unlink()  # not needed any more
    graphs = read(tmp_path / "arrays" / "arrays" / "esol-random0.safetensors")
    assert len(graphs.select("test")) == 12
    found = write_moleculenet(options(tmp_path / "arrays", systems=["ours"]), folder=tmp_path, say=lambda _: None)
    ours = [row["mean"] for row in record["rows"] if row["system"].startswith("ours")]
    assert [row["mean"] for row in found["rows"]] == pytest.approx(ours)


def test_the_table_compares_the_same_seeds_and_splits_and_seconds_of_one_machine_alone(tmp_path: Path) -> None:
    def keep(system: str, seed: int, value: float, seconds: float, machine: str = "here") -> None:
        for split in ("random0", "random1"):
            cell: dict[str, Any] = {"set": "esol", "split": split, "seed": seed, "score": value, "gigabytes": 1.0}
            cell |= {"cpu_seconds": seconds, "machine": machine, "date": "2026-01-01", "versions": {"torch": "2"}}
            cell |= {} if system == "forest" else {"singles": [value + 0.1] * 3}
            write_json(tmp_path / "cells" / f"esol-{split}-{seed}-{system}.json", cell)

    keep("ours", 0, 0.6, 40.0)
    keep("ours", 1, 0.8, 60.0)
    keep("chemprop", 0, 0.7, 100.0)
    keep("chemprop", 1, 0.9, 100.0)
    keep("forest", 0, 0.5, 1.0, "elsewhere")
    how = options(tmp_path, systems=None, seeds=2, quick=False, kept_only=True)
    record = write_moleculenet(how, folder=tmp_path, say=print)
    of = {row["system"]: row for row in record["rows"]}
    assert of["ours"]["mean"] == pytest.approx(0.7)
    assert (of["chemprop"]["ahead_mean"], of["chemprop"]["cpu_of_ours"]) == (pytest.approx(0.1), 0.5)
    assert of["chemprop alone"]["cpu_seconds"] == pytest.approx(100 / 3)
    assert of["forest"]["ahead_mean"] == pytest.approx(-0.1)  # of seed 0 alone; a lower error is better
    assert "cpu_of_ours" not in of["forest"]
    assert of["ours"]["low"] < 0.7 < of["ours"]["high"]
    assert "| ESOL (RMSE) | random | chemprop, 3 models | 0.8000 ±" in markdown(record)


@pytest.mark.usefixtures("small")
def test_what_cannot_run_is_refused_or_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="--chemprop names the program of an environment of its own"):
        write_moleculenet(options(tmp_path / "work", systems=["chemprop"]), folder=tmp_path, say=print)
    with pytest.raises(ConfigError, match="has no system 'xgboost'"):
        options(tmp_path, systems=["xgboost"])
    monkeypatch.setattr(systems, "QUICK", TINY | {"forest": ("--trees", "-1")})
    said: list[str] = []
    with pytest.raises(ConfigError, match="no cell is there yet"):
        write_moleculenet(options(tmp_path / "work", systems=["forest"]), folder=tmp_path, say=said.append)
    (line,) = said
    assert "forest: failed, python" in line
