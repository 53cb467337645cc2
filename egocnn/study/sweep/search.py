"""Settings + graphs -> every setting scored on every fold, none of them by test graphs; the best one chosen. The
validation part of a fold gives the score, and a share of its training part, split off once more, chooses epoch and
restart: so the test folds are as good as new for the chosen setting. Finished pairs of setting and fold are files,
found again by the digest of all that decides their score."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from itertools import chain, groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any

from egocnn.config import LOWER_IS_BETTER, ReadConfig, TrainConfig
from egocnn.data.collection import Collection
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DivergedError, RunError
from egocnn.files import check_is_no_file, remove, write_json, write_text
from egocnn.nn.device import choose_device
from egocnn.study.cluster import connected, library_versions, name_machine, run_jobs
from egocnn.study.crossval import Protocol, cross_validate, read_record
from egocnn.study.crossval.folds import FoldTask, derived, digest_of_folds, make_tasks, split_off_validation
from egocnn.study.crossval.record import SECONDS, fingerprint, other_settings, read_plain
from egocnn.study.crossval.scoring import check_tasks
from egocnn.study.crossval.training import Execution, FoldSettings, ego_fold, ignore, stacked_folds
from egocnn.study.sweep.grid import DIVERGED, Axis, GridPoint, PairScore, Sweep, changed, flags, in_words, ranked
from egocnn.train.metrics import score_for
from egocnn.train.recipe import TrainingPlan, read_if_small, stays_on_disk
from egocnn.train.validation import check_targets, with_known_target

INNER = 2**20  # Any number that no restart has: the inner parts follow from other seeds than the trainings.
ABOUT, CHOSEN, PAIRS = "about.json", "chosen.json", "folds"  # Files of the folder of a sweep, and its folder of pairs.
NEW = ".new"  # In the folder of a sweep the one that is to replace it.


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """The folder of one sweep."""

    folder: Path
    fingerprint: str  # digest of data and folds

    @staticmethod
    def open(folder: Path, fingerprint: str, stated: Mapping[str, Any], *, overwrite: bool) -> "SweepFolder":
        """Make the folder, or go on with the one that is there; refuse that of other data or folds. A sweep that is to
        replace another grows inside its folder, and goes on from what an earlier attempt at the same left there."""
        check_folder(folder)
        replaces = overwrite and (folder / ABOUT).exists()
        folder = folder / NEW if replaces else folder
        about, pairs = folder / ABOUT, folder / PAIRS
        found = read_plain(about, {"fingerprint", "stated"}, "what a sweep says of itself")
        if found is not None and found["fingerprint"] != fingerprint:
            if not replaces:
                there = found["stated"] if isinstance(found["stated"], dict) else {}
                reason = other_settings(folder, there, stated)
                raise RunError(f"{reason}; --overwrite starts anew, or name another folder")
            remove(folder)
            found = None
        pairs.mkdir(parents=True, exist_ok=True)
        if found is None:
            write_json(about, {"fingerprint": fingerprint, "stated": dict(stated)})
        return SweepFolder(folder, fingerprint)

    def find(self, point: GridPoint, fold: int) -> PairScore | None:
        """The score of an earlier call, None where there is none."""
        path = self._path(point, fold)
        found = read_plain(path, {"scored", "setting"}, "a finished fold of a sweep")
        try:
            return None if found is None else PairScore(**found["scored"])
        except TypeError:
            raise RunError(f"{path}: is damaged; remove it, and the fold is computed anew") from None

    def add(self, point: GridPoint, score: PairScore) -> None:
        """Save a score."""
        write_json(self._path(point, score.fold), {"setting": dict(point.values), "scored": asdict(score)})

    def put_in_place(self, folder: Path) -> None:
        """Let a sweep that has grown inside the folder of an earlier one take its place, the record last."""
        if self.folder == folder:
            return
        for old in (folder / CHOSEN, folder / f"{CHOSEN}.partial", *(folder / PAIRS).glob("*.json")):
            old.unlink(missing_ok=True)
        new = [file for file in self.folder.rglob("*") if file.is_file()]
        for file in sorted(new, key=lambda file: file.name == "sweep.json"):
            file.replace(folder / file.relative_to(self.folder))
        remove(self.folder)

    def _path(self, point: GridPoint, fold: int) -> Path:
        # all settings that decide a score: where it is computed does not
        decides = [self.fingerprint, asdict(point.model), {**asdict(point.train), "device": None}, fold]
        name = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:32]
        return self.folder / PAIRS / f"{name}.json"


def check_folder(folder: Path) -> None:
    """Refuse, before anything is computed, a place where no sweep can be saved."""
    check_is_no_file(folder, RunError)
    if folder.exists() and not (folder / ABOUT).exists() and any(folder.iterdir()):
        raise RunError(f"{folder}: is not empty and holds no sweep; name another folder")


def sweep(
    graphs: Collection, points: Sequence[GridPoint], axes: Sequence[Axis], protocol: Protocol, folder: Path, *,
    execution: Execution | None = None, sampled: int | None = None, test_chosen: bool = False,
    overwrite: bool = False, data: str = "", reading: ReadConfig | None = None, command: str = "",
) -> Sweep:  # fmt: skip
    """Score all settings, write the tables into the folder, and give the record. Finished pairs are saved there: the
    same call, or one with more settings, goes on from them. ``test_chosen``: test the best one on the test folds."""
    execution = execution or Execution()
    points = [replace(each, train=execution.train_config(each.train)) for each in points]
    train = points[0].train
    device = choose_device(train.device)
    if stays_on_disk(graphs) and execution.stack:
        raise ConfigError("graphs that stay in their store train alone, not stacked; leave --stack out")
    graphs = with_known_target(read_if_small(graphs)).with_parts(None)
    check_targets(graphs.outline)
    tasks = inner_tasks(graphs.outline, protocol, train)
    metric = score_for(graphs.outline, protocol.metric)
    check_tasks(tasks, graphs.outline, metric, networks=max(point.train.networks for point in points))
    few = graphs.choose(tasks[0].learned[:2])
    for point in points:  # a network that cannot be built is refused before others are trained
        try:
            TrainingPlan.of(few, replace(point.model, tie=point.model.tie is True)).build([0])
        except ConfigError as error:
            raise ConfigError(f"--over, {in_words(point.values)}: {error}") from None
    counts = {name: getattr(protocol, name) for name in ("folds", "runs", "restarts", "combine")}
    counts |= {} if metric in ("accuracy", "r2") else {"metric": metric}
    counts |= {"targets": list(graphs.outline.target_names)} if graphs.outline.targets else {}
    stated = {"protocol": protocol.name, **counts, "seed": train.seed, "validation": train.validation}
    digest = fingerprint(graphs, digest_of_folds(tasks), stated)
    saved = SweepFolder.open(folder, digest, {**stated, "data": data}, overwrite=overwrite)
    with connected(execution.ray):
        settings = FoldSettings(graphs, points[0].model, train, protocol.combine, execution, metric)
        rows = ranked(points, _score_all(settings, points, tasks, saved), lower=metric in LOWER_IS_BETTER)
        best, first = rows[0]
        record = Sweep(
            data=data, protocol=protocol.name, folds=protocol.folds, restarts=protocol.restarts, score=metric,
            over={axis.name: list(axis.values) for axis in axes}, sampled=sampled, rows=tuple(row for _, row in rows),
            chosen={"model": asdict(best.model), "train": asdict(best.train)},
            flags=flags(changed(reading or ReadConfig(), best.model, best.train)), test=None, seed=train.seed,
            seconds=sum(row.seconds for _, row in rows), command=command, date=date.today().isoformat(),
            machine=name_machine(device, execution.ray), versions=library_versions(),
        )  # fmt: skip
        write_text(saved.folder / "sweep.csv", record.csv())
        write_json(saved.folder / "sweep.json", asdict(record))
        if test_chosen and first.mean is not None:
            record = replace(record, test=_test(graphs, best, protocol, saved.folder / CHOSEN, execution, data))
            write_json(saved.folder / "sweep.json", asdict(record))
        saved.put_in_place(folder)
    return record


def inner_tasks(graphs: Graphs, protocol: Protocol, train: TrainConfig) -> list[FoldTask]:
    """The folds without their tested graphs: the validation part is tested instead."""
    found = []
    for task in make_tasks(graphs, protocol, train):
        seed = derived(train.seed, task.fold, INNER)
        both = split_off_validation(graphs, task.learned, train.validation, seed)
        found.append(FoldTask(task.fold, *both, task.validation, task.seeds[:1]))  # more runs are for what is reported
    return found


def _score_all(
    settings: FoldSettings, points: Sequence[GridPoint], tasks: Sequence[FoldTask], saved: SweepFolder
) -> list[list[PairScore]]:
    """Per setting its scores; those that are not saved yet are computed, and saved."""
    execution = settings.execution
    found: list[list[PairScore]] = [[] for _ in points]
    missing: list[tuple[int, FoldTask]] = []
    for (number, point), task in product(enumerate(points), tasks):
        if (score := saved.find(point, task.fold)) is None:
            missing.append((number, task))
        else:
            found[number].append(score)
    total = len(points) * len(tasks)
    if done := total - len(missing):
        execution.log(f"{done} of {total} trainings are there already")
    execution.progress(done)
    stacked = execution.is_stacked(settings.graphs, choose_device(settings.train.device))
    if stacked:  # all folds of a setting are one job
        calls = [(number, [task for _, task in some]) for number, some in groupby(missing, key=itemgetter(0))]
    else:
        calls = [(number, [task]) for number, task in missing]
    own = replace(settings, execution=replace(execution, progress=ignore) if stacked else execution.silent)
    how: dict[str, Any] = {} if stacked else {"jobs": execution.jobs, "ray": execution.ray}
    results = run_jobs(partial(score_folds, own, points, stacked), calls, **how)
    try:
        for number, score in chain.from_iterable(results):
            saved.add(points[number], score)
            found[number].append(score)
            done += 1
            execution.progress(done)
            shown = DIVERGED if score.score is None else f"{score.score:.4f}"
            where = f"{in_words(points[number].values)}, fold {score.fold}"
            execution.log(f"{done}/{total}: {where}: {shown} ({score.seconds:.1f} s)")
    except KeyboardInterrupt:
        kept = f"{done} of {total} trainings are kept in {saved.folder}"
        raise KeyboardInterrupt(f"stopped; {kept}, and the same command goes on") from None
    return found


def score_folds(
    settings: FoldSettings, points: Sequence[GridPoint], stacked: bool, number: int, tasks: Sequence[FoldTask]
) -> list[tuple[int, PairScore]]:
    """One job: the scores of a setting on these folds, each with the number of the setting."""
    started, scores = time.perf_counter(), dict[int, PairScore]()
    own = replace(settings, model=points[number].model, train=points[number].train)
    with suppress(DivergedError):  # a learning rate too large is a result, no reason to stop
        for fold in stacked_folds(own, tasks) if stacked else (ego_fold(own, task) for task in tasks):
            found: dict[str, Any] = {name: getattr(fold, name) for name in ("fold", "score", "parameters", "targets")}
            scores[fold.fold] = PairScore(**found, seconds=round(sum(getattr(fold, name) for name in SECONDS), 3))
    # one fold without a score leaves the setting without a mean: the others do not matter
    share = round((time.perf_counter() - started) / len(tasks), 3)
    without = PairScore(fold=0, score=None, parameters=None, seconds=share)
    return [(number, scores.get(task.fold, replace(without, fold=task.fold))) for task in tasks]


def _test(
    graphs: Collection, best: GridPoint, protocol: Protocol, path: Path, execution: Execution, data: str
) -> dict[str, Any]:
    """The one look of the chosen setting at the test folds; a second one, by another setting, is refused."""
    before = read_record(path)
    if before is not None:
        own = {"model": before.settings["model"], "train": {**before.settings["train"], "device": None}}
        now = {"model": asdict(best.model), "train": {**asdict(best.train), "device": None}}
        if own != json.loads(json.dumps(now)):  # as a file gives it back
            raise RunError(
                f"{path}: another setting has had its look at the test folds; a second look makes them a part of the "
                "choice. --overwrite forgets the whole sweep, or name another folder"
            )
    execution.log(f"the test folds, with {in_words(best.values)}")
    where: dict[str, Any] = {name: getattr(execution, name) for name in ("jobs", "ray", "stack", "log")}
    found = cross_validate(graphs, best.model, best.train, protocol=protocol, data=data, out=path, **where)
    own = {"targets": found.targets} if found.targets else {}
    return {"mean": found.mean, "std": found.std, "interval": list(found.interval), "file": path.name, **own}
