"""Shards in, Parquet out: every row in its place, and only what is missing is done again."""

import csv
import gzip
import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from egocnn.errors import ConfigError, DataError
from egocnn.scale import shards as scale
from egocnn.scale.shards import Choice, find_shards
from lab.molecules import BROKEN
from tests.support.commands import SHORT, Run, answer, check_refused, files_of_at_most, kill_once, printed
from tests.support.tiny import names_in

pytest.importorskip("rdkit")
parquet = pytest.importorskip("pyarrow.parquet")
pyarrow = pytest.importorskip("pyarrow")
SMILES = ["CCO", "CCC", "not_a_molecule((", "CCCO"]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """One of every kind, with the same molecules."""
    folder = tmp_path / "in"
    folder.mkdir()
    table = pyarrow.table({"smiles": SMILES, "key": [1, 2, 3, 4], "tags": [["a"], [], None, ["b"]]})
    parquet.write_table(table, folder / "a.parquet")
    (folder / "b.csv").write_text("\n".join(["smiles,key", *(f"{text},{n}" for n, text in enumerate(SMILES, 1)), ""]))
    with gzip.open(folder / "c.smi.gz", "wt") as file:
        file.writelines(f"{text} m{n}\n" for n, text in enumerate(SMILES))
    (folder / "d.jsonl").write_text("".join(json.dumps({"smiles": text, "key": 7}) + "\n" for text in SMILES))
    return folder


def table(path: Path) -> Any:
    return parquet.read_table(path)


def rows(folder: Path) -> list[dict[str, Any]]:
    """Those of the shards a and e."""
    return [row for name in "ae" for row in table(folder / f"{name}.parquet").to_pylist()]


def words(model: Path, shards: Path, *more: object) -> list[object]:
    return ["predict", model, shards, "-o", shards.parent / "out", "--jobs", 1, "--quiet", *more]


def test_every_kind_of_shard_gives_the_same_predictions_row_by_row(run: Run, model: Path, shards: Path) -> None:
    told = answer(run, *words(model, shards))
    out = shards.parent / "out"
    assert (told["shards"], told["rows"], told["failed"]) == (4, 16, 4)
    assert names_in(out) == ["a.parquet", "b.parquet", "c.parquet", "d.parquet", "manifest.json"]
    first = table(out / "a.parquet")
    assert first.column("key").to_pylist() == [1, 2, 3, 4]
    assert first.column("tags").to_pylist() == [["a"], [], None, ["b"]]
    assert [bool(error) for error in first.column("error").to_pylist()] == [False, False, True, False]
    for name in ("b", "c", "d"):
        again = table(out / f"{name}.parquet").column("p_alkane").to_pylist()
        assert again == pytest.approx(first.column("p_alkane").to_pylist())
    assert table(out / "c.parquet").column("name").to_pylist() == ["m0", "m1", "m2", "m3"]
    manifest = json.loads((out / "manifest.json").read_text())
    assert [shard["input"] for shard in manifest["shards"]] == ["a.parquet", "b.csv", "c.smi.gz", "d.jsonl"]
    assert {"rows": 4, "failed": 1}.items() <= manifest["shards"][0].items()


def test_a_shard_without_rows_has_the_columns_of_the_others(run: Run, model: Path, shards: Path) -> None:
    """A store of very many rows has such files, and reads all of them by one schema."""
    parquet.write_table(table(shards / "a.parquet").slice(0, 0), shards / "empty.parquet")
    assert answer(run, *words(model, shards))["shards"] == 5
    full, empty = (table(shards.parent / "out" / f"{name}.parquet") for name in ("a", "empty"))
    assert empty.schema.equals(full.schema)
    assert empty.num_rows == 0


def test_two_processes_say_what_one_does_and_a_shard_that_cannot_be_read_keeps_no_other_from_its_answers(
    run: Run, model: Path, shards: Path
) -> None:
    (shards / "a.parquet").write_bytes(b"PAR1 and nothing else")
    parquet.write_table(pyarrow.table({"smiles": ["CCO", "CC"] * 2500}), shards / "e.parquet")
    outs = [shards.parent / f"out{jobs}" for jobs in (1, 2)]
    for jobs, out in enumerate(outs, 1):
        call = ["predict", model, shards, "-o", out, "--jobs", jobs, "--quiet"]
        check_refused(run, "a.parquet: cannot be read", *call)
        assert names_in(out) == [*(f"{name}.parquet" for name in "bcde"), "manifest.json"]
    for name in "bcde":
        one, other = (table(out / f"{name}.parquet") for out in outs)
        assert one.equals(other)
    assert str(other.schema.field("error").type) == "string"  # a text where no row fails


def test_only_what_is_missing_is_done_again(run: Run, model: Path, shards: Path) -> None:
    out = shards.parent / "out"
    printed(run, *words(model, shards, "--shard", "2/2"))
    assert names_in(out) == ["b.parquet", "d.parquet", "manifest.json"]
    before = (out / "b.parquet").stat().st_mtime_ns
    printed(run, *words(model, shards))
    assert (out / "b.parquet").stat().st_mtime_ns == before
    assert len(json.loads((out / "manifest.json").read_text())["shards"]) == 4
    printed(run, *words(model, shards, "--ray", "nowhere:1"))  # where nothing is missing nobody is asked


def test_killed_and_called_again_it_writes_what_it_would_have_written(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for n in range(4):
        parquet.write_table(pyarrow.table({"smiles": SMILES * 250}), tmp_path / "in" / f"{n}.parquet")
    out = tmp_path / "out"
    kill_once(lambda: (out / "0.parquet").exists(), *words(model, tmp_path / "in"))
    assert not (out / "3.parquet").exists()
    printed(run, *words(model, tmp_path / "in"))
    assert names_in(out) == [*(f"{n}.parquet" for n in range(4)), "manifest.json"]
    assert {table(out / f"{n}.parquet").num_rows for n in range(4)} == {1000}
    assert all(table(out / f"{n}.parquet").equals(table(out / "0.parquet")) for n in range(4))


def test_another_model_other_settings_or_a_changed_shard_are_refused(run: Run, model: Path, shards: Path) -> None:
    printed(run, *words(model, shards))
    check_refused(run, "by another model or with other settings", *words(model, shards, "--hydrogens"))
    other = shutil.copytree(model, shards.parent / "other")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config))  # the same values in another layout: not the same file
    check_refused(run, "by another model or with other settings", *words(other, shards))
    (shards / "b.csv").write_text("smiles\nCC\n")
    check_refused(run, "b.csv: has changed since", *words(model, shards))


def test_what_cannot_be_told_apart_or_has_no_place_is_refused(run: Run, model: Path, shards: Path) -> None:
    check_refused(run, "holds the shards to be read", "predict", model, shards, "-o", shards)
    check_refused(run, "is a run folder", "predict", model, shards, "-o", model / "out")
    check_refused(run, "--limit is for one file", *words(model, shards, "--limit", 3))
    check_refused(run, "no file matches", "predict", model, shards / "x*.csv", "-o", shards.parent / "out")
    check_refused(run, "a share is I/N", *words(model, shards, "--shard", "3/2"))
    (shards / "a.csv").write_text("smiles\nCC\n")
    check_refused(run, "5 shards, and 4 names", *words(model, shards))
    (shards / "a.csv").unlink()
    (shards.parent / "out").mkdir()
    parquet.write_table(pyarrow.table({"x": [1]}), shards.parent / "out" / "a.parquet")
    check_refused(run, "is in the way", *words(model, shards))


def test_explanations_are_lists_in_the_order_of_the_atoms(run: Run, model: Path, shards: Path) -> None:
    out = shards.parent / "why"
    printed(run, "explain", model, shards / "*.parquet", "-o", out, "--jobs", 1, "--quiet")
    found = table(out / "a.parquet")
    assert str(found.schema.field("contributions").type).startswith("list<")
    first, _, broken, _ = found.to_pylist()
    assert len(first["contributions"]) == 3
    assert first["base"] + sum(first["contributions"]) == pytest.approx(first["output"], abs=1e-4)
    assert set(first["critical_atoms"]) <= {0, 1, 2}
    assert (broken["contributions"], broken["base"]) == (None, None)
    assert broken["error"].startswith("SMILES")
    check_refused(run, "choose another --technique", *explain_words(model, shards, "--technique", "paper"))


def test_a_molecule_is_no_pattern_and_a_folder_of_other_things_holds_no_shards(tmp_path: Path) -> None:
    assert find_shards("C[C@H](N)C(=O)O") is None
    assert find_shards("*CC") is None
    assert find_shards(str(tmp_path)) is None
    with pytest.raises(DataError, match="no file matches"):
        find_shards(str(tmp_path / "*.csv"))


def explain(run: Run, model: Path, shards: Path, out: str, *more: object) -> Path:
    folder = shards.parent / out
    printed(run, "explain", model, shards, "-o", folder, "--jobs", 1, "--quiet", *more)
    return folder


def test_only_rows_that_are_asked_for_are_explained(run: Run, model: Path, shards: Path) -> None:
    for kind in ("b.csv", "c.smi.gz", "d.jsonl"):
        (shards / kind).unlink()
    more = pyarrow.table({"smiles": ["CCCCCO", "CC", "C((", "CO"], "key": [5, 6, 7, 8]})
    parquet.write_table(more, shards / "e.parquet")
    every = {row["key"]: row for row in rows(explain(run, model, shards, "all"))}
    printed(run, *words(model, shards))
    known = {row["key"]: row["p_alkane"] for row in rows(shards.parent / "out") if row["p_alkane"] is not None}
    middle = sorted(known.values())[2]
    found = rows(explain(run, model, shards, "some", "--where", f"p_alkane > {middle!r}"))
    assert [row["key"] for row in found] == [key for key, value in known.items() if value > middle]
    assert all(row["p_alkane"] == known[row["key"]] for row in found)
    best = explain(run, model, shards, "best", "--highest", 2, "--by", "p_alkane")
    highest = table(best / "highest.parquet").to_pylist()
    assert {row["key"] for row in highest} == set(sorted(known, key=known.__getitem__)[-2:])
    for row in (*found, *highest):
        assert row["contributions"] == pytest.approx(every[row["key"]]["contributions"], abs=1e-6)
        assert row["critical_atoms"] == every[row["key"]]["critical_atoms"]
    check_refused(run, "the columns are", *explain_words(model, shards, "--where", "y > 1"))
    check_refused(run, "--by key: is none of", *explain_words(model, shards, "--highest", 2, "--by", "key"))
    check_refused(run, "not allowed with", *explain_words(model, shards, "--highest", 2, "--where", "p_alkane > 0"))
    of_that_name = shards.parent / "named"
    of_that_name.mkdir()
    (of_that_name / "highest.csv").write_text("smiles\nCCO\n")
    told = "highest.csv: its file would be called highest.parquet, as that of all shards is"
    check_refused(run, told, *explain_words(model, of_that_name, "--highest", 2, "--by", "p_alkane"))


def explain_words(model: Path, shards: Path, *more: object) -> list[object]:
    return ["explain", model, shards, "-o", shards.parent / "x", *more]


def test_of_one_file_too_only_the_rows_asked_for_are_explained(run: Run, model: Path, shards: Path) -> None:
    words = ["explain", model, shards / "a.parquet", "--skip-invalid", "--quiet", "-o"]
    assert answer(run, *words, shards.parent / "one", "--highest", 2)["graphs"] == 2
    check_refused(run, "no graph is chosen", *words, shards.parent / "none", "--where", "p_alkane > 2")


def test_ray_writes_the_same_files_bit_for_bit(run: Run, model: Path, shards: Path) -> None:
    if find_spec("ray") is None:  # not imported here: what it says in later tests is settled when it is
        pytest.skip("ray is not installed")
    printed(run, *words(model, shards))
    printed(run, "predict", model, shards, "-o", shards.parent / "ray", "--jobs", 1, "--quiet", "--ray", "local")
    for name in "abcd":
        one, other = (table(shards.parent / out / f"{name}.parquet") for out in ("out", "ray"))
        assert one.equals(other)
        assert one.schema.equals(other.schema)


KINDS = {"predicted": "string", "p_toxic": "double", "NR-AhR p_1": "double", "spread": "double"}
ROWS = [
    {"predicted": "toxic", "p_toxic": 0.95, "NR-AhR p_1": 0.1, "spread": 0.2},
    {"predicted": "toxic", "p_toxic": 0.9, "NR-AhR p_1": 0.3, "spread": 0.1},
    {"predicted": "not and never", "p_toxic": 0.2, "NR-AhR p_1": 0.3, "spread": None},
    {"predicted": "toxic", "p_toxic": 0.95, "NR-AhR p_1": 0.9, "spread": 0.1},
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p_toxic > 0.9", [0, 3]),
        ("p_toxic>=.9 and spread<1.5e-1", [1, 3]),
        ("NR-AhR p_1 == 0.3", [1, 2]),
        ("predicted != toxic", [2]),
        ("predicted == 'not and never' and p_toxic < 1", [2]),
        ("spread != 0.2", [1, 3]),
    ],
)
def test_a_condition_chooses_the_rows_of_which_all_terms_hold(text: str, expected: list[int]) -> None:
    assert Choice.parse(text, KINDS)(ROWS) == expected


@pytest.mark.parametrize(
    "text",
    ["", "p_toxic", "p_toxic = 1", "p_toxic > high", "predicted > a", "unknown == 1", "p_toxic > 1 or spread < 1",
     "p_toxic > 0.5 and", "__import__('os') == 1", "p_toxic > 0.5 and spread"],
)  # fmt: skip
def test_what_is_no_condition_on_these_columns_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="the columns are predicted, p_toxic"):
        Choice.parse(text, KINDS)


def test_the_highest_come_in_their_order_and_of_equals_the_first() -> None:
    assert Choice(highest=1, by="p_toxic")(ROWS) == [0]
    assert Choice(highest=3, by="p_toxic")(ROWS) == [0, 1, 3]
    assert Choice(highest=9, by="p_toxic")(iter(ROWS)) == [0, 1, 2, 3]


def test_a_shard_that_changes_or_vanishes_while_it_is_read_leaves_no_file_and_the_others_theirs(
    run: Run, model: Path, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, happens = scale.answer_rows, {"a.parquet": "grows", "c.parquet": "vanishes"}

    def meanwhile(target: Path, *call: Any) -> Any:
        what = happens.pop(target.name, "")
        if what == "grows":
            with (shards / "a.parquet").open("ab") as file:
                file.write(b"more")
        elif what:
            (shards / "c.smi.gz").unlink()
        return answer(target, *call)

    monkeypatch.setattr(scale, "answer_rows", meanwhile)
    told = "a.parquet: has changed while it was read; call again when nobody writes to it; 1 more of the shards"
    check_refused(run, told, *words(model, shards))
    assert names_in(shards.parent / "out") == ["b.parquet", "d.parquet", "manifest.json"]


def test_a_full_disk_is_told_in_one_line_and_what_was_written_stays(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    parquet.write_table(pyarrow.table({"smiles": SMILES}), tmp_path / "in" / "a.parquet")
    long = [f"{n:040d}{'x' * 40}" for n in range(4000)]
    parquet.write_table(pyarrow.table({"smiles": SMILES * 1000, "key": long}), tmp_path / "in" / "b.parquet")
    with files_of_at_most(20_000):
        code, out, err = run(*words(model, tmp_path / "in"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"egocnn: {tmp_path / 'out' / 'b.parquet'}: ")
    assert err.endswith("File too large\n")
    assert names_in(tmp_path / "out") == ["a.parquet", "manifest.json"]
    printed(run, *words(model, tmp_path / "in"))
    assert table(tmp_path / "out" / "b.parquet").num_rows == 4000


def test_every_kind_of_broken_row_keeps_its_place_and_has_its_reason(run: Run, model: Path, tmp_path: Path) -> None:
    more = {
        "spaces": "   ",
        "a line end": "CC\nO",
        "a number": 7,
        "a truth": True,
        "a list": [1],
        "an object": {"a": 1},
    }
    kinds: dict[str, Any] = {**BROKEN, **more, "very long": "C" * 100_000}
    mixed = [row for kind, broken in kinds.items() for row in [("CCO", ""), (broken, kind), ("CCC", "")]]
    (tmp_path / "in").mkdir()
    lines = (json.dumps({"smiles": smiles, "kind": kind}) + "\n" for smiles, kind in mixed)
    (tmp_path / "in" / "a.jsonl").write_text("".join(lines))
    texts = [(smiles, kind) for smiles, kind in mixed if smiles is None or isinstance(smiles, str)]
    columns = dict(zip(("smiles", "kind"), zip(*texts, strict=True), strict=True))
    parquet.write_table(pyarrow.table(columns), tmp_path / "in" / "b.parquet")
    with (tmp_path / "in" / "c.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("smiles", "kind"), *texts])
    printed(run, *words(model, tmp_path / "in"))
    for name, rows in (("a", mixed), ("b", texts), ("c", texts)):
        found = table(tmp_path / "out" / f"{name}.parquet")
        assert found.column("kind").to_pylist() == [kind for _, kind in rows]
        assert [bool(error) for error in found.column("error").to_pylist()] == [bool(kind) for _, kind in rows]
        assert [p is None for p in found.column("predicted").to_pylist()] == [bool(kind) for _, kind in rows]
        assert found.column("name").to_pylist() == [str(n) for n in range(1, len(rows) + 1)]


SOUND = '{"nodes": [{"label": "C", "attributes": [0.5]}, {"label": "O", "attributes": [1]}], "edges": [[0, 1, "x"]]'
BROKEN_LINES = {
    b'{"nodes": [': "not JSON",
    b"\xff": "byte 0xff is not UTF-8",
    b"\0": "holds a NUL byte",
    b'{"nodes": ["C"], "edges": []}': "has no node attributes, but",
    SOUND.replace('"label": "O", ', "").encode() + b"}": "node 1 has other fields than node 0",
    SOUND.replace(', "x"', "").encode() + b"}": "has no edge labels, but",
    SOUND.replace("0.5", "1e39").encode() + b"}": "must be finite numbers, got 1e+39",
    SOUND.replace("0.5", "3e38").encode() + b"}": "node attribute 1 is 3e+38",
    SOUND.replace('"x"]', '"x"], [1, 0, "y"]').encode() + b"}": "is given twice with different labels",
}
"""What refuses one graph alone, beside others, or to the model."""


def test_a_line_whose_graph_does_not_fit_costs_no_other_line_its_answer(run: Run, tmp_path: Path) -> None:
    good = [f'{SOUND}, "target": "{"ab"[n % 2]}"}}\n'.encode() for n in range(20)]
    (tmp_path / "g.jsonl").write_bytes(b"".join(good))
    printed(run, "train", tmp_path / "g.jsonl", "-o", tmp_path / "run", *SHORT)
    (tmp_path / "in").mkdir()
    odd = [f'{SOUND}, "target": {text}}}'.encode() for text in ("[1]", '{"a": 1}', "1e300")]
    lines = [line for broken in (*reversed(BROKEN_LINES), *odd) for line in (broken + b"\n", good[0])]
    with gzip.open(tmp_path / "in" / "a.jsonl.gz", "wb") as file:
        file.writelines(lines)
    printed(run, *words(tmp_path / "run", tmp_path / "in"))
    errors = [error or "" for error in table(tmp_path / "out" / "a.parquet").column("error").to_pylist()]
    wanted = [text for broken in (*reversed(BROKEN_LINES.values()), *("" for _ in odd)) for text in (broken, "")]
    assert [bool(error) for error in errors] == [bool(text) for text in wanted]
    assert all(text in error for text, error in zip(wanted, errors, strict=True)), errors
    answer = json.loads(
        printed(run, "predict", tmp_path / "run", tmp_path / "in" / "a.jsonl.gz", "-o", tmp_path / "p.csv", "--json")
    )
    assert (answer["graphs"], answer["failed"]) == (len(lines) - len(BROKEN_LINES), len(BROKEN_LINES))
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "b.jsonl").write_bytes(b'{"nodes": ["Zz"], "edges": []}\n' * 3)
    told = f"none of 3 rows has an answer; the column error in {tmp_path / 'out2'} says why"
    check_refused(run, told, "predict", tmp_path / "run", tmp_path / "none", "-o", tmp_path / "out2", "--quiet")
