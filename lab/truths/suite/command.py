"""python -m lab truths make | halves | rules | choices | ceilings | score: tasks of known truth, halved and scored."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import inf
from pathlib import Path

from egocnn.config import TrainConfig
from lab.record import RESULTS, circumstances

HALVES = RESULTS / "truths_halves.json"
RULES = RESULTS / "truths_rules.json"
CHOICES = RESULTS / "truths_choices.json"
CEILINGS = RESULTS / "truths_ceilings.json"


def main(words: Sequence[str]) -> None:
    options = _parser().parse_args(words)
    options.run(options, " ".join(["python -m lab truths", *words]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab truths", description=__doc__)
    parts = parser.add_subparsers(required=True, metavar="PART")
    make = parts.add_parser("make", help="write every task as files that are read without RDKit")
    make.add_argument("-o", "--out", type=Path, required=True, metavar="FOLDER", help="where to write them")
    make.add_argument("--full", action="store_true", help="about four times as many graphs, where the data allow it")
    make.add_argument("--tasks", metavar="NAMES", help="some of them, comma-separated [all]")
    make.add_argument("--seed", type=int, default=None, help="of all generators")
    make.set_defaults(run=_make)
    halves = parts.add_parser("halves", help="write which tasks choose and which are only reported")
    halves.add_argument(
        "-o", "--out", type=Path, default=HALVES, metavar="FILE", help="the JSON to write [%(default)s]"
    )
    halves.set_defaults(run=_halves)
    score = parts.add_parser("score", help="train, explain and score on every task")
    score.add_argument("--tasks", type=Path, required=True, metavar="FOLDER", help="what make wrote")
    score.add_argument("--half", choices=("choosing", "reporting", "named", "all"), default="all", help="[%(default)s]")
    score.add_argument("--only", metavar="NAMES", help="some tasks of the half, comma-separated [all]")
    score.add_argument("--seeds", type=int, default=1, metavar="N", help="trainings of every task [%(default)s]")
    networks = TrainConfig().networks
    score.add_argument("--networks", type=int, default=networks, metavar="R", help="networks of a model [%(default)s]")
    score.add_argument("--peer", action="store_true", help="measure a GINE and its explainers, too")
    score.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time [%(default)s]")
    score.add_argument("--minutes", type=float, default=inf, metavar="M", help="start no further job after these")
    score.add_argument("--work", type=Path, metavar="FOLDER", help="finished jobs [runs/truths_work/HALF]")
    score.add_argument("-o", "--out", type=Path, metavar="FILE", help="the JSON to write [results/truths_HALF.json]")
    score.set_defaults(run=_score)
    rules = parts.add_parser("rules", help="score ways to combine the views of the evidence on the choosing half")
    rules.add_argument("--tasks", type=Path, required=True, metavar="FOLDER", help="what make wrote")
    rules.add_argument("--work", type=Path, metavar="FOLDER", help="trained models [runs/truths_rules]")
    rules.add_argument("-o", "--out", type=Path, default=RULES, metavar="FILE", help="the JSON to write [%(default)s]")
    rules.set_defaults(run=_rules)
    choices = parts.add_parser("choices", help="score how points are asked and pieces joined on the choosing half")
    choices.add_argument("--tasks", type=Path, required=True, metavar="FOLDER", help="what make wrote")
    choices.add_argument("--work", type=Path, metavar="FOLDER", help="trained models [runs/truths_choices]")
    choices.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="that trains them [%(default)s]")
    choices.add_argument("--jobs", type=int, default=1, metavar="N", help="processes that explain [%(default)s]")
    choices.add_argument("-o", "--out", type=Path, default=CHOICES, metavar="FILE", help="the JSON [%(default)s]")
    choices.set_defaults(run=_choices)
    ceilings = parts.add_parser("ceilings", help="how high Kendall's tau of known contributions can get")
    ceilings.add_argument("--tasks", type=Path, required=True, metavar="FOLDER", help="what make wrote")
    ceilings.add_argument("-o", "--out", type=Path, default=CEILINGS, metavar="FILE", help="the JSON [%(default)s]")
    ceilings.set_defaults(run=_ceilings)
    return parser


def _make(options: argparse.Namespace, command: str) -> None:
    from lab.truths.suite.make import make_tasks
    from lab.truths.suite.task import FAST, FULL, SEED
    from lab.truths.tasks import data_folder

    names = options.tasks.split(",") if options.tasks else None
    seed = SEED if options.seed is None else options.seed
    sizes = FULL if options.full else FAST
    make_tasks(options.out, sizes, data_folder(), names=names, seed=seed, command=command)


def _halves(options: argparse.Namespace, command: str) -> None:
    from egocnn.files import write_json
    from lab.truths.suite.halves import DRAW_SEED, draw_halves

    write_json(options.out, {**draw_halves(), "seed": DRAW_SEED, "command": command, **circumstances()})
    print(options.out)


def _score(options: argparse.Namespace, command: str) -> None:
    from lab.truths.suite.scoring.run import WORK, ScoreOptions, score

    settings = ScoreOptions(
        tasks=options.tasks,
        half=options.half,
        names=tuple(options.only.split(",")) if options.only else None,
        seeds=options.seeds,
        networks=options.networks,
        peer=options.peer,
        jobs=options.jobs,
        minutes=options.minutes,
        work=options.work or WORK / options.half,
    )
    out = options.out or RESULTS / f"truths_{options.half}.json"
    score(settings, out, command=command, say=lambda line: print(line, flush=True))
    print(out.with_suffix(".md").read_text(encoding="utf-8"))


def _rules(options: argparse.Namespace, command: str) -> None:
    from lab.truths.suite.scoring.rules import WORK, score_rules

    score_rules(options.tasks, options.out, work=options.work or WORK, command=command, say=lambda line: print(line))
    print(options.out)


def _choices(options: argparse.Namespace, command: str) -> None:
    from lab.truths.suite.scoring.choices import WORK, score_choices

    more = {"device": options.device, "jobs": options.jobs, "command": command}
    score_choices(options.tasks, options.out, work=options.work or WORK, say=print, **more)
    print(options.out)


def _ceilings(options: argparse.Namespace, command: str) -> None:
    from lab.truths.suite.scoring.ceilings import score_ceilings

    score_ceilings(options.tasks, options.out, command=command)
    print(options.out)
