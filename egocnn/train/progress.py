"""Show how training goes: a bar on a terminal, plain lines elsewhere, nothing with --quiet."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from egocnn.config import TrainConfig
from egocnn.errors import MissingExtraError
from egocnn.train.history import History, Report
from egocnn.train.metrics import in_words


@contextmanager
def training_report(config: TrainConfig, *, visible: bool = True) -> Iterator[Report | None]:
    """A report for :func:`egocnn.train.recipe.learn`, cleaned up at the end."""
    if not visible or not _has_bar():
        yield _print_line if visible else None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(TextColumn("training"), *columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=config.epochs)
        yield lambda history, _: bar.update(task, completed=len(history.epochs), description=summary(history))


@contextmanager
def counting_report(what: str, total: int, *, visible: bool = True) -> Iterator[Callable[[int], None] | None]:
    """A report to be called with how many of ``total`` are done: a bar on a terminal, nothing elsewhere."""
    if not visible or not _has_bar():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def summary(history: History) -> str:
    """The last epoch in a few words."""
    last, best = history.epochs[-1], history.best
    loss = f"loss {last.train_loss:.4f}"
    score = f"validation {in_words(history.monitor)} {last.validation_score:.4f}"
    return f"{loss}, {score} (best {best.validation_score:.4f} at {best.epoch})" if best else loss


def _print_line(history: History, config: TrainConfig) -> None:
    recent = history.epochs[-5:]  # at their pace, early stopping left aside
    left = (config.epochs - len(history.epochs)) * sum(epoch.seconds for epoch in recent) / len(recent)
    print_line(f"epoch {len(history.epochs)}/{config.epochs}: {summary(history)}, {left:.0f} s left")


def print_line(text: str) -> None:
    """On stderr, at once. Where nobody reads it (train … 2>&1 | head) or the disk is full, the work goes on."""
    try:
        print(text + "\n", end="", file=sys.stderr, flush=True)  # in one piece: torchrun's share a terminal
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


@contextmanager
def tensorboard_report(folder: Path, report: Report | None) -> Iterator[Report | None]:
    """Also log every epoch for TensorBoard under ``folder``."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tensorboard", "tensorboard") from None
    with ExitStack() as open_files:
        writers: list[SummaryWriter] = []

        def log(history: History, config: TrainConfig) -> None:
            if not writers:  # not before there is something to log: the run may yet be refused
                writers.append(open_files.enter_context(SummaryWriter(str(folder))))
            for name, value in asdict(history.epochs[-1]).items():
                writers[0].add_scalar(name, value, len(history.epochs))
            if report is not None:
                report(history, config)

        yield log


def _has_bar() -> bool:
    return sys.stderr.isatty() and find_spec("rich") is not None
