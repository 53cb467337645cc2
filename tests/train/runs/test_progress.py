import json
import os
import pty
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from egocnn.cli import main
from egocnn.config import TrainConfig
from egocnn.train.history import Epoch, History
from egocnn.train.progress import summary, training_report
from tests.support.samples import sure
from tests.support.tiny import ALCOHOLS, FLAGS

TRAINING = ["train", ALCOHOLS, *FLAGS]


def read_all(terminal: int) -> str:
    """What a terminal gets until the other side has closed it."""
    shown = b""
    with suppress(OSError):
        while some := os.read(terminal, 4096):
            shown += some
    os.close(terminal)
    return shown.decode()


def history(n_epochs: int, *, seconds: float = 2.0, finite: bool = True) -> History:
    told = History(monitor="roc_auc")
    for number in range(1, n_epochs + 1):
        scores = {"train_score": 0.5, "validation_score": 0.25 * number}
        losses = {"train_loss": 1 / number, "validation_loss": 1.0 if finite else float("nan")}
        told.add(Epoch(epoch=number, learning_rate=0.1, seconds=seconds, **scores, **losses))
    return told


def test_on_a_terminal_a_bar_shows_loss_score_and_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("COLUMNS", "120"), ("LINES", "40"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    with ThreadPoolExecutor(1) as reader, os.fdopen(theirs, "w") as terminal:
        reading = reader.submit(read_all, ours)  # a terminal that nobody reads is soon full
        monkeypatch.setattr(sys, "stderr", terminal)
        assert main([*TRAINING, "--epochs", "4", "-o", str(tmp_path / "run"), "--json"]) == 0
        terminal.close()
        shown = reading.result()
    assert json.loads(capsys.readouterr().out)["epochs"] == 4
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "\x1b[" in shown
    assert "━" in plain
    assert re.search(r"\d+/4", plain)
    assert re.search(r"\d:\d\d:\d\d", plain)
    assert re.search(r"loss \d\.\d{4}, validation accuracy \d\.\d{4} \(best \d\.\d{4} at \d+\)", plain)
    assert "epoch 1/4" not in plain


def test_elsewhere_there_is_a_plain_line_per_epoch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAINING, "--epochs", "3", "-o", str(tmp_path / "run")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    pattern = r"epoch (\d)/3: loss \d\.\d{4}, validation accuracy \d\.\d{4} \(best \d\.\d{4} at \d\), \d+ s left"
    assert [match[1] for line in lines if (match := re.fullmatch(pattern, line))] == ["1", "2", "3"]


def test_quiet_is_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*TRAINING, "--epochs", "1", "--quiet", "-o", str(tmp_path / "run")]
    assert main(words) == 0
    told = capsys.readouterr()
    assert told.out + told.err == ""
    assert main([*words, "--overwrite", "--json"]) == 0
    told = capsys.readouterr()
    assert (json.loads(told.out)["epochs"], told.err) == (1, "")
    with training_report(TrainConfig(), visible=False) as report:
        assert report is None


def test_the_time_left_follows_the_last_epochs_and_the_summary_tells_the_last_loss_and_the_best(
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow_then_fast = History([*history(5, seconds=100).epochs, *history(5, seconds=1).epochs])
    for told, epochs, left in ((history(4), 10, 12), (slow_then_fast, 20, 10), (history(4), 4, 0)):
        config = TrainConfig(epochs=epochs)
        with training_report(config) as report:
            sure(report)(told, config)
        assert capsys.readouterr().err.endswith(f", {left} s left\n")
    assert summary(history(2)) == "loss 0.5000, validation ROC AUC 0.5000 (best 0.5000 at 2)"
    assert summary(history(1, finite=False)) == "loss 1.0000"


def test_a_training_whose_news_nobody_reads_any_more_goes_on(tmp_path: Path) -> None:
    """egocnn train … 2>&1 | head -n 1"""
    command = [sys.executable, "-m", "egocnn", *TRAINING, "--epochs", "4", "-o", str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"epoch 1/4")
        process.stdout.close()
    assert process.returncode == 0
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["epochs"] == 4


@pytest.mark.parametrize("errors", ["2>/dev/full", "2>&-"])
def test_a_training_whose_news_cannot_be_written_goes_on_and_a_refusal_keeps_its_code(
    errors: str, tmp_path: Path
) -> None:
    """A log on a disk that is full, and a daemon that has closed stderr."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    words = [*TRAINING, "--epochs", "2", "-o", str(tmp_path / "run")]
    for code in (0, 2):  # the second time the folder holds a run
        shell = ["sh", "-c", f'exec "$@" {errors}', "sh", sys.executable, "-m", "egocnn", *words]
        assert subprocess.run(shell, stdout=subprocess.DEVNULL, check=False).returncode == code
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["epochs"] == 2


# ── TensorBoard ───────────────────────────────────────────────────────────────────────────────────


def events(folder: Path) -> list[Path]:
    return sorted(folder.glob("tensorboard/events.out.tfevents.*"))


def test_tensorboard_gets_every_number_of_every_epoch(tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = tmp_path / "run"
    words = [*TRAINING, "--epochs", "3", "--quiet", "--tensorboard", "-o", str(run)]
    assert main(words) == 0
    assert len(events(run)) == 1
    told = reader.EventAccumulator(str(run / "tensorboard"))
    told.Reload()
    lines = [line.split(",") for line in (run / "history.csv").read_text().splitlines()]
    assert lines[0][0] == "network"
    for column, name in enumerate(lines[0][1:], 1):
        scalars = told.Scalars(name)
        assert [scalar.step for scalar in scalars] == [1, 2, 3]
        assert [scalar.value for scalar in scalars] == pytest.approx([float(line[column]) for line in lines[1:]])

    assert main(words) == 2  # refused, so nothing is logged
    assert len(events(run)) == 1
    before = events(run)
    assert main([*words, "--overwrite", "--seed", "1"]) == 0
    assert len(events(run)) == 1
    assert events(run) != before
