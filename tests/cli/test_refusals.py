"""What the command line refuses: exit code 2, one clear line, no traceback, nothing half-written."""

import errno
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest
import torch

from egocnn.cli import main
from tests.support.commands import SHORT, Run, check_refused, printed
from tests.support.tiny import ALCOHOLS, SMILES_TABLE, contents, names_in, write_table


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], "egocnn: the following arguments are required: COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["train"], "egocnn train: the following arguments are required: DATA, -o/--out; see egocnn train --help"),
        (["train", ALCOHOLS, "-o", "x", "--wdith", "3"], "unrecognized arguments: --wdith 3"),
        (["train", ALCOHOLS, "-o", "x", "--test", "abc"], "argument --test: invalid float value: 'abc'"),
        (["train", ALCOHOLS, "-o", "x", "--test", "1"], "test must be at least 0 and below 1, got 1.0"),
        (["train", ALCOHOLS, "-o", "x", "--resume", "--overwrite"], "not allowed with argument"),
        (["info", ALCOHOLS, "--limit", "0"], "a number of graphs must be 1 or more, got '0'"),
        (["info", ALCOHOLS, "--limit", "-3"], "--limit"),
        (["info", ALCOHOLS, "--limit=--"], "argument --limit: invalid value: '--'"),
        (["info", ALCOHOLS, "--seed=-1"], "seed must be at least 0, got -1"),
        (["crossval", ALCOHOLS, "--jobs", "1" + "0" * 20], "argument --jobs: a whole number from 1 to 1000"),
        (["predict", "x", "shards", "--jobs", "100000"], "argument --jobs: a whole number from 1 to 1000"),
        (["train", ALCOHOLS, "-o", ""], "argument -o/--out: a path is needed, got ''"),
        (["export", "", "-o", "x.onnx"], "argument RUN: a path is needed, got ''"),
        (["predict", "x"], "egocnn predict: the following arguments are required: DATA"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(words: list[str], wanted: str, run: Run) -> None:
    check_refused(run, wanted, *words)


BAD_SETTINGS = [
    (["--epochs", "0"], "epochs must be at least 1, got 0"),
    (["--embedding", "attributes"], "embedding 'attributes' needs graphs whose nodes have attributes"),
    (["--width", str(10**12)], "out of memory; try a smaller --width"),
    (["--width", str(10**17)], "out of memory; try a smaller --width"),
    (["--split", "part=dev"], "no part is called 'dev'; there are train, validation, test"),
]


@pytest.mark.parametrize(("words", "wanted"), BAD_SETTINGS)
def test_bad_settings_are_one_line_and_leave_nothing_behind(
    words: list[str], wanted: str, run: Run, tmp_path: Path
) -> None:
    check_refused(run, wanted, "train", ALCOHOLS, "-o", tmp_path / "run", "--quiet", *words)
    assert names_in(tmp_path) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_one_line(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    wanted = "--device cuda: this machine has no CUDA device that torch can use"
    check_refused(run, wanted, "train", ALCOHOLS, "-o", tmp_path / "run", *SHORT, "--device", "cuda")
    check_refused(run, wanted, "predict", alcohol_run, ALCOHOLS, "-o", tmp_path / "p.csv", "--device", "cuda")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("source", ["compounds:sugars", "nowhere/at/all", ""])
def test_bad_data_is_one_line_for_every_command(source: str, run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    check_refused(run, source, "info", source)
    check_refused(run, source, "train", source, "-o", tmp_path / "run", *SHORT)
    check_refused(run, source, "predict", alcohol_run, source, "-o", tmp_path / "p.csv")
    assert names_in(tmp_path) == []


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "words", "wanted"),
    [
        ("smiles,y\nCCO,1\nnot_a_smiles((,0\n", [], "molecules.csv, row 2: SMILES 'not_a_smiles((' does not parse"),
        (SMILES_TABLE, ["--target", "toxic"], "no column or field is called 'toxic'; there are name, smiles, label"),
        ("smiles\nCC\nCCO\n", [], "no target to learn; name its column with --target"),
    ],
)
def test_a_broken_table_is_one_line_naming_file_and_row(
    text: str, words: list[str], wanted: str, run: Run, tmp_path: Path
) -> None:
    pytest.importorskip("rdkit")
    table = write_table(tmp_path, text)
    check_refused(run, wanted, "train", table, "-o", tmp_path / "run", *SHORT, *words)
    assert names_in(tmp_path) == ["molecules.csv"]


def test_a_place_where_nothing_can_be_written_is_refused_before_any_work(
    run: Run, alcohol_run: Path, tmp_path: Path
) -> None:
    """A path below a file cannot be written, whoever asks; permissions would not stop root."""
    file = tmp_path / "file"
    file.write_text("mine")
    for out in (file, file / "run", file / "deep" / "run"):
        for words in ([], ["--resume"], ["--overwrite"]):
            check_refused(run, "file: is a file, not a folder", "train", ALCOHOLS, "-o", out, *SHORT, *words)
    for out in (file / "p.csv", file / "deep" / "p.csv"):
        check_refused(run, "file: is a file, not a folder", "predict", alcohol_run, ALCOHOLS, "-o", out)
    check_refused(run, "is a folder; name the file to write", "predict", alcohol_run, ALCOHOLS, "-o", tmp_path)
    assert file.read_text() == "mine"
    assert names_in(tmp_path) == ["file"]
    long = tmp_path / ("x" * 300)
    check_refused(run, "File name too long", "train", ALCOHOLS, "-o", long, *SHORT)
    check_refused(run, "File name too long", "predict", alcohol_run, ALCOHOLS, "-o", long)


def test_predictions_never_replace_the_data(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path)
    wanted = "molecules.csv: is the data to be read; name another file to write"
    check_refused(run, wanted, "predict", alcohol_run, table, "-o", tmp_path / "." / "molecules.csv")
    assert table.read_text() == SMILES_TABLE


def test_nothing_is_written_into_a_run_folder_a_store_or_the_folder_of_the_data(
    run: Run, alcohol_run: Path, tmp_path: Path
) -> None:
    store, link, own = tmp_path / "a.store", tmp_path / "link.csv", shutil.copytree(alcohol_run, tmp_path / "run")
    assert run("prepare", ALCOHOLS, "-o", store)[0] == 0
    link.symlink_to(own / "test_predictions.csv")
    before = contents(tmp_path)
    folds = ["crossval", ALCOHOLS, "--folds", 2, *SHORT, "--overwrite"]
    for words, out in (
        (["predict", own, ALCOHOLS], own / "p.csv"),
        (["predict", own, ALCOHOLS], link),
        (["export", own], own / "model.onnx"),
        (folds, own / "metrics.json"),
        (["explain", own, ALCOHOLS], own / "report"),
        (["patterns", own, ALCOHOLS], own),
        (["sweep", ALCOHOLS, "--over", "width=4", *SHORT], own / "deep" / "sweep"),
        (["prepare", ALCOHOLS, "--overwrite"], own),
        (["train", ALCOHOLS, *SHORT, "--overwrite"], own / "again"),
    ):
        check_refused(run, f"{own}: is a run folder; write to another folder", *words, "-o", out)
    for words in (["train", ALCOHOLS, *SHORT, "--overwrite"], ["explain", own, ALCOHOLS]):
        check_refused(run, f"{store}: is a store; write to another folder", *words, "-o", store)
    graphs = tmp_path / "SET"
    graphs.mkdir()
    (graphs / "SET_A.txt").touch()
    wanted = "p.csv: is in the folder of the data to be read; name another file to write"
    check_refused(run, wanted, "predict", own, graphs, "-o", graphs / "p.csv")
    assert {name: value for name, value in contents(tmp_path).items() if "SET" not in str(name)} == before


# ── run folders ───────────────────────────────────────────────────────────────────────────────────


def test_graphs_of_another_kind_than_the_model_reads_are_refused(run: Run, alcohol_run: Path, tmp_path: Path) -> None:
    bare = tmp_path / "X"
    bare.mkdir()
    for name, text in {"A": "", "graph_indicator": "1\n2\n", "graph_labels": "1\n1\n"}.items():
        (bare / f"X_{name}.txt").write_text(text)
    wanted = "the model reads node labels (C, H, O), but these graphs have none"
    check_refused(run, wanted, "predict", alcohol_run, bare, "-o", tmp_path / "p.csv")
    assert names_in(tmp_path) == ["X"]


# ── for those who want to know more ───────────────────────────────────────────────────────────────


def test_with_debug_the_traceback_comes_before_the_line(run: Run, tmp_path: Path) -> None:
    code, out, err = run("train", "compounds:sugars", "-o", tmp_path / "run", "--debug")
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert lines[0].startswith("Traceback")
    assert "egocnn.errors.DataError" in err
    assert lines[-1].startswith("egocnn: compounds:sugars: no family is called 'sugars'")


def test_a_defect_of_egocnn_itself_shows_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("egocnn.study.describe.describe", break_down)
    with pytest.raises(ZeroDivisionError):
        main(["info", ALCOHOLS])


def test_escape_codes_in_names_of_files_never_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    for place in ("\x1b[31mrun", "new\x1b[31m"):
        check_refused(run, "\\x1b[31m", "predict", tmp_path / place, ALCOHOLS, "-o", tmp_path / "p.csv")
    assert "\x1b" not in run("predict", tmp_path / "\x1b[31mrun", ALCOHOLS, "-o", tmp_path / "p.csv")[2]


def test_escape_codes_in_names_never_reach_the_terminal(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = tmp_path / "ev\x1b[31mil.csv"
    table.write_text(
        "smiles,target,name\n" + "".join(f"{'C' * n}O,\x1b[31mred{n % 2},\x1b]0;x\x07{n}\n" for n in range(2, 12))
    )
    assert "\\x1b[31mred0: 5" in printed(run, "info", table)
    assert run("train", table, "-o", tmp_path / "run", *SHORT[:-1])[0] == 0  # not quietly
    assert "2 classes to predict" in caplog.text
    assert "\x1b" not in "".join(caplog.messages)  # the text that pytest shows has none
    for words in (["explain", tmp_path / "run", table], ["patterns", tmp_path / "run", table, "--min-support", 1]):
        code, out, err = run(*words, "-o", tmp_path / str(words[0]))
        assert code == 0, err
        assert "red" in out
        assert not {"\x1b", "\x07"} & set(out + err)


def test_a_full_disk_is_told_by_the_folder_that_was_typed(
    run: Run, alcohol_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("egocnn.explain.structure.finite_json", full)
    check_refused(
        run, "egocnn: report: No space left on device", "explain", alcohol_run, ALCOHOLS, "-o", "report", "--quiet"
    )


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ("~nobody-of-this-name/x.csv", "x.csv: no such file or folder"),
        ("", "an empty text is not a source of graphs"),
        ("[.csv", "[.csv: no file matches"),
    ],
)
def test_data_that_are_nowhere_are_refused_by_what_reads_many_files(
    data: str, wanted: str, run: Run, alcohol_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    write_table(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    check_refused(run, wanted, "predict", alcohol_run, data, "-o", tmp_path / "p.csv")
    check_refused(run, wanted, "explain", alcohol_run, data, "-o", tmp_path / "report")
    assert names_in(tmp_path) == ["here"]


def test_a_full_device_is_told_by_its_name(run: Run, alcohol_run: Path) -> None:
    check_refused(
        run, "egocnn: /dev/full: No space left on device", "predict", alcohol_run, ALCOHOLS, "-o", "/dev/full"
    )


def test_links_that_lead_back_to_themselves_are_refused_wherever_they_are_named(
    run: Run, alcohol_run: Path, tmp_path: Path
) -> None:
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    wanted = "loop.csv: leads through a link that leads back to itself"
    for words in (["predict", alcohol_run], ["explain", alcohol_run], ["train"], ["prepare"], ["crossval"]):
        check_refused(run, wanted, *words, ALCOHOLS, "-o", loop)
    check_refused(run, "run: leads through a link", "train", ALCOHOLS, "-o", loop / "run")
    check_refused(run, "loop.csv/config.json: Too many levels of symbolic links", "serve", loop)


def test_a_pipe_in_place_of_settings_splits_or_a_record_is_refused_and_not_waited_for(run: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    folds = ["crossval", ALCOHOLS, *SHORT]
    for words in (["--config", pipe], ["--against", pipe], ["--protocol", "fair", "--splits", pipe]):
        check_refused(run, "is a pipe or a device, not a file", *folds, *words)


def test_a_record_is_written_to_a_pipe_that_somebody_reads(run: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as threads:
        told = threads.submit(pipe.read_text)
        printed(run, "crossval", ALCOHOLS, *SHORT, "--folds", "2", "-o", pipe, "--quiet")
        assert len(json.loads(told.result())["folds"]) == 2


STOP_AT = """
import sys
from egocnn.cli import main

class Stop:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stop())
sys.exit(main(["predict", "run", "data.csv"]))
"""


@pytest.mark.parametrize("module", ["numpy", "egocnn.cli.commands.predict"])
def test_to_be_stopped_while_a_library_is_loaded_is_one_line(module: str) -> None:
    """Once when the command is looked for, and once when it needs what cannot be loaded a second time."""
    done = subprocess.run([sys.executable, "-c", STOP_AT, module], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "egocnn: stopped\n")
