"""Full disks, folders without permission, data that vanish, clocks that jump: one line, and results stay whole."""

import csv
import json
import re
import shutil
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from egocnn.cli import main
from egocnn.data.store import Store
from egocnn.errors import DataError
from tests.project.faults.processes import SHORT, commands, egocnn, mounted, obeying_permissions
from tests.support.commands import SHORT as QUICK
from tests.support.commands import Run, check_refused, files_of_at_most
from tests.support.tiny import ALCOHOLS, SMILES_TABLE, check_same_run, contents


@pytest.fixture
def forbidden() -> Iterator[list[Path]]:
    """What is put in here loses its permissions, and gets them back at the end."""
    several: list[Path] = []
    yield several
    for path in several:
        path.chmod(0o755)


@pytest.mark.parametrize("fault", ["File too large", "Read-only file system", "No space left on device"])
def test_where_nothing_can_be_written_one_line_says_so_and_earlier_results_stay_as_they_are(
    fault: str, alcohol_run: Path, earlier: Path, tmp_path: Path
) -> None:
    before, out, start, script = contents(earlier), earlier, list[str](), ""
    words = commands(alcohol_run, out) | {  # a training may not replace the other
        "train": ["train", ALCOHOLS, "-o", str(out / "another"), *SHORT],
        "crossval": ["crossval", ALCOHOLS, "--folds", "3", "-o", str(out / "another.json"), *SHORT],
    }
    if fault == "File too large":
        script = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))"  # bytes that a file may have
        del words["export"]  # takes its time
    elif fault == "Read-only file system":
        start = [*mounted(f'--bind "{out}"', out), "sh", "-c", f'mount -o remount,ro,bind "{out}" && exec "$@"', "sh"]
    else:
        out, words = tmp_path, commands(alcohol_run, tmp_path)
        start = mounted("-t tmpfs -o size=8k tmpfs", out)
        for small in ("predict", "crossval", "export"):  # their results are smaller than the smallest disk
            del words[small]
    for done in egocnn(*words.values(), before=start, script=script):
        done.check_refused(fault, str(out))
        assert ".tmp" not in done.said
    for left in ("another", "another.json"):
        assert not (earlier / left).is_file()
        shutil.rmtree(earlier / left, ignore_errors=True)
    assert contents(earlier) == before


def test_a_training_stopped_by_a_full_disk_goes_on_when_there_is_room_again(
    alcohol_run: Path, tmp_path: Path, run: Run
) -> None:
    size = (alcohol_run / "model.safetensors").stat().st_size
    words = ["train", ALCOHOLS, "-o", str(tmp_path / "run"), *QUICK]
    with files_of_at_most(size // 2):
        check_refused(run, "File too large", *words)
    assert main([*words, "--resume"]) == 0
    check_same_run(tmp_path / "run", alcohol_run)


def test_without_permission_one_line_says_so_and_a_model_that_may_only_be_read_is_explained_all_the_same(
    alcohol_run: Path, tmp_path: Path, forbidden: list[Path]
) -> None:
    (tmp_path / "mine").mkdir()
    words = [[*each, str(tmp_path / "mine")] for each in commands(alcohol_run, tmp_path / "mine").values()]
    models = [
        Path(shutil.copytree(alcohol_run, tmp_path / name)) for name in ("config.json", "model.safetensors", "readable")
    ]
    for model in models[:2]:
        several = commands(model, tmp_path)
        words += [[*several[name], f"{model / model.name}: "] for name in ("predict", "explain", "export")]
        (model / model.name).chmod(0)
    forbidden += [tmp_path / "mine", models[2]]
    for folder in forbidden:
        folder.chmod(0o555)
    paper = [*commands(models[2], tmp_path)["explain"], "--technique", "paper"]
    *refused, explained = egocnn(*(each[:-1] for each in words), paper, before=obeying_permissions())
    for done, (*_, place) in zip(refused, words, strict=True):
        done.check_refused(place, "Permission denied")
        assert ".tmp" not in done.said
    told = f"egocnn: {models[2]}: the attention layer is not kept (Permission denied)\n"
    assert (explained.code, explained.said) == (0, told)
    assert (tmp_path / "report" / "index.html").exists()
    assert list((tmp_path / "mine").iterdir()) == []
    assert not any((tmp_path / name).exists() for name in ("predictions.csv", "model.onnx"))


VANISHING = """
import os
targets = TARGETS
def vanish(event, details):
    if event == "open" and isinstance(details[0], (str, bytes, os.PathLike)):
        path = os.fsdecode(details[0])
        if path in targets and os.path.exists(path):
            os.unlink(path)  # after it was found, before it is read
sys.addaudithook(vanish)
"""


def vanishing(*paths: Path) -> str:
    return VANISHING.replace("TARGETS", repr(list(map(str, paths))))


def test_a_model_that_vanishes_is_one_line(alcohol_run: Path, tmp_path: Path) -> None:
    gone = []
    for number, name in enumerate(["config.json", "model.safetensors"]):
        shutil.copytree(alcohol_run, tmp_path / str(number))
        gone.append(tmp_path / str(number) / name)
    (tmp_path / "out").mkdir()
    words = [commands(file.parent, tmp_path / "out")[name] for file in gone for name in ("predict", "export")]
    for done, each in zip(egocnn(*words, script=vanishing(*gone)), words, strict=True):
        done.check_refused(each[1])
    assert not any(file.exists() for file in gone)
    assert not any((tmp_path / "out").iterdir())


def sources(folder: Path) -> list[tuple[Path, Path]]:
    """DATA of several kinds, and one of its files."""
    folder.mkdir()
    tu, table, lines = folder / "X", folder / "molecules.csv", folder / "graphs.jsonl"
    tu.mkdir()
    for name, text in {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n", "graph_labels": "0\n"}.items():
        (tu / f"X_{name}.txt").write_text(text)
    table.write_text(SMILES_TABLE)
    lines.write_text('{"nodes": 2, "edges": [[0, 1]], "target": "a"}\n{"nodes": 1, "edges": [], "target": "b"}\n')
    for store in ("one", "other"):
        assert main(["prepare", str(lines), "-o", str(folder / store)]) == 0
    return [
        (tu, tu / "X_graph_labels.txt"),
        (table, table),
        (lines, lines),
        (folder / "one", folder / "one" / "indices.bin"),
        (folder / "other", folder / "other" / "manifest.json"),
    ]


@pytest.mark.parametrize("command", ["train", "prepare"])
def test_data_that_vanish_or_may_not_be_read_are_one_line(command: str, tmp_path: Path) -> None:
    several, out = sources(tmp_path / "data"), tmp_path / "out"
    words = [[command, str(data), "-o", str(out), "--quiet"] for data, _ in several]
    files = [file for _, file in several]
    for file in files:
        file.chmod(0)
    forbidden = egocnn(*words, before=obeying_permissions())
    for file in files:
        file.chmod(0o644)
    for done, each in zip([*forbidden, *egocnn(*words, script=vanishing(*files))], words * 2, strict=True):
        done.check_refused(each[1])
    assert not any(file.exists() for file in (*files, out))


def test_a_column_that_vanishes_between_two_portions_is_refused(tmp_path: Path) -> None:
    assert main(["prepare", ALCOHOLS, "-o", str(tmp_path / "store")]) == 0
    portions = Store.open(tmp_path / "store").portions(1)
    next(portions)
    (tmp_path / "store" / "indices.bin").unlink()
    with pytest.raises(DataError, match=r"store: indices\.bin is missing"):
        list(portions)


ROOT = Path(__file__).resolve().parent.parent.parent.parent


def test_the_record_says_that_60_kills_over_every_command_that_writes_were_survived() -> None:
    record = json.loads((ROOT / "results" / "kills.json").read_text(encoding="utf-8"))
    assert record["findings"] == []
    assert record["survived"] == record["kills"] == len(record["every_kill"]) >= 60
    assert {"train over a run", "crossval on Ray", "prepare over a store"} <= record["by_command"].keys()
    assert min(record["by_command"].values()) >= 5


DATE = re.compile(rb"\b\d{4}-\d\d-\d\d\b")


def test_every_command_gives_the_same_results_while_the_clock_jumps(
    alcohol_run: Path, earlier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    real, jumps = time.time, cycle([0, -1e8, 3e8, -5e8, 1])
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + next(jumps))
        patch.setattr(time, "time_ns", lambda: int((real() + next(jumps)) * 1e9))
        for name, words in commands(alcohol_run, tmp_path).items():
            if name != "export":
                assert run(*words)[::2] == (0, "")
    expected, found = contents(earlier), contents(tmp_path)
    assert found.keys() == expected.keys()
    for name in found.keys() - {"run/metrics.json", "run/history.csv", "crossval.json"}:
        one, other = (DATE.sub(b"today", each[name]) for each in (found, expected))  # a report has the clock's date
        assert one == other, name
    jumped, steady = (json.loads(each["crossval.json"]) for each in (found, expected))
    assert jumped["mean"] == steady["mean"]
    assert jumped["seconds"] >= max(jumped["training_seconds"], jumped["testing_seconds"]) >= 0
    epochs = list(csv.DictReader(found["run/history.csv"].decode().splitlines()))
    assert all(0 < float(epoch["seconds"]) < 100 for epoch in epochs)
