"""What is fed broken files: one target for every way in which egocnn takes data from outside.

A target lays an input out as files and reads them. Options of reading follow from a checksum of the input, so that the
same bytes always mean the same call.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from egocnn.config import ReadConfig
from egocnn.data.generated import PER_TEST_SIZE, AlcoholsConfig, parse_options
from egocnn.data.graphs import Graphs
from egocnn.data.read import read, stream_source
from egocnn.data.rows import RowFile
from egocnn.data.store import Store, write_store
from egocnn.errors import EgoCNNError
from egocnn.explain.structure import read_structures
from egocnn.show.streaming import usual_settings
from egocnn.study.crossval.record import PartialRecord, read_record
from egocnn.train.predictions import prediction_rows
from egocnn.train.run import finished_metrics
from fuzz import parts, requests, seals, seeds, words
from fuzz.guard import Limits, ViolationError, check_refusal, watched
from fuzz.markup import check_outputs

USUAL = Limits()
MOST_GENERATED = 15_000
"""Atoms, about, of the compounds that are generated for an input."""
TABLES = Limits(multiple=1500)
"""A molecule of one letter takes two bytes of a table and becomes a graph with its name, its row and its place."""


SERVED = Limits(seconds=15.0, base=1 << 30)
"""What a worker may take before it is ended."""


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    seeds: Callable[[], tuple[bytes, ...]]
    lay: Callable[[bytes, Path], Path]
    """writes the case into an empty folder; what is to be read of it"""
    act: Callable[[Path, int], None]
    """reads it; the number chooses among the options"""
    words: tuple[bytes, ...] = ()
    """of the format, for mutations"""
    writable: bool = False
    """whether it writes into the folder of the case"""
    limits: Limits = USUAL


def try_input(target: Target, data: bytes, folder: Path, limits: Limits | None = None) -> str | None:
    """Feed one input to a target; the refusal, None where it was read, or a :class:`ViolationError`."""
    warm_up(target, folder)
    case = folder / "case"
    shutil.rmtree(case, ignore_errors=True)
    case.mkdir(parents=True)
    path = target.lay(data, case)
    before = _listing(case)
    refusal: EgoCNNError | None = None
    with watched(case, len(data), limits or target.limits, writable=target.writable):
        try:
            target.act(path, zlib.crc32(data))
        except EgoCNNError as error:
            refusal = error.with_traceback(None)  # its frames, which are ours too, would hold files open
        except Exception as error:
            raise ViolationError(f"{type(error).__name__}: {str(error)[:300]}") from error
    if not target.writable and _listing(case) != before:
        raise ViolationError("the folder of the input is not as it was")
    if refusal is not None:
        check_refusal(refusal, case)
        return str(refusal)
    return None


_warm: set[str] = set()


def warm_up(target: Target, folder: Path) -> None:
    """Read what is valid, unwatched: libraries are imported now, and not counted as something an input did."""
    if target.name in _warm:
        return
    _warm.add(target.name)
    for data in target.seeds():
        case = folder / "case"
        shutil.rmtree(case, ignore_errors=True)
        case.mkdir(parents=True)
        path = target.lay(data, case)
        for number in range(0, 128, 16):
            with suppress(EgoCNNError):
                target.act(path, number)


def _listing(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.lstat().st_size) for path in folder.rglob("*")}


# ── laying out ────────────────────────────────────────────────────────────────────────────────────


def _file(*suffixes: str) -> Callable[[bytes, Path], Path]:
    def lay(data: bytes, folder: Path) -> Path:
        path = folder / f"file{suffixes[zlib.crc32(data) % len(suffixes)]}"
        path.write_bytes(data)
        return path

    return lay


def _table(data: bytes, folder: Path) -> Path:
    return _file(".tsv" if b"\t" in data.partition(b"\n")[0] else ".csv")(data, folder)


def _rows(data: bytes, folder: Path) -> Path:
    return _file(".jsonl")(data, folder) if data.lstrip().startswith(b"{") else _table(data, folder)


def _files(data: bytes, folder: Path) -> Path:
    parts.lay_out(parts.cut(data), folder)
    return folder


def _sealed(seal: Callable[[Path], None]) -> Callable[[bytes, Path], Path]:
    """Most inputs get the checksums that somebody hostile would give them: without, nothing else would be tried."""

    def lay(data: bytes, folder: Path) -> Path:
        _files(data, folder)
        if zlib.crc32(data) % 8:
            seal(folder)
        return folder

    return lay


def _zip(data: bytes, folder: Path) -> Path:
    files = parts.cut(data)
    return _file(".zip")(parts.pack(files) if files and not data.startswith(b"PK") else data, folder)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def _options(number: int) -> ReadConfig:
    choose = number >> 3
    return ReadConfig(
        skip_invalid=bool(choose & 1),
        hydrogens=bool(choose & 2),
        salts="largest" if choose >> 14 & 1 else "keep",
        task=("auto", "auto", "classification", "regression")[choose >> 2 & 3],
        split="split" if choose >> 4 & 7 == 0 else None,
        group="group" if choose >> 7 & 7 == 0 else None,
        target="target" if choose >> 10 & 15 == 0 else None,
    )


def _plain_options(number: int) -> ReadConfig:
    return ReadConfig(task=_options(number).task)


def _check(graphs: Graphs) -> Graphs:
    graphs.validate()
    if not len(graphs) or graphs.node_counts.min() < 1:
        raise ViolationError("read a collection with nothing in it")
    return graphs


def _read(path: Path, number: int) -> None:
    graphs = _check(read(path, _options(number)))
    for graph in graphs[:3]:
        str(graph.name)


def _read_rows(path: Path, number: int) -> None:
    """As a shard: every row keeps its place, with an answer or with the reason why it has none."""
    model = seeds.of_molecules()
    file = RowFile.open(path, usual_settings(model), {"hydrogens": True} if number & 16 else {})
    for chunk in file.chunks:
        portion, found = file.reader(chunk).answered(lambda graphs: list(prediction_rows(model, graphs, device="cpu")))
        if len(portion.rows) != len(chunk) or len(found or ()) != portion.errors.count(""):
            raise ViolationError(f"{len(chunk)} rows, {len(portion.rows)} came back, {len(found or ())} answers")


def _read_set(path: Path, number: int) -> None:
    _check(read(path, _plain_options(number)))


def _read_saved(path: Path, _: int) -> None:
    graphs = read(path)
    graphs.validate()
    for graph in graphs[:3]:
        str(graph)


def _prepare(path: Path, number: int) -> None:
    """Reading line by line into a store must give what reading the whole gives, or refuse what that refuses."""
    config = _options(number)
    whole, why = _outcome(lambda: read(path, config))
    source = stream_source(path, config)
    assert source is not None
    stored, reason = _outcome(lambda: _store(source.portions, path.parent / "store", source.facts))
    if (whole is None) != (stored is None):
        raise ViolationError(f"read at once: {why}; read as a stream: {reason}")
    if why is not None:
        check_refusal(why, path.parent)
    if reason is not None:
        raise reason
    assert whole is not None
    assert stored is not None
    for name in ("names", "smiles", "class_names", "node_label_names", "edge_label_names"):
        if getattr(whole, name) != getattr(stored, name):
            raise ViolationError(f"{name} differ: {getattr(whole, name)!r:.99} and {getattr(stored, name)!r:.99}")
    for name in ("node_ptr", "indptr", "indices", "target", "part", "group", "node_label", "edge_label"):
        one, other = getattr(whole, name), getattr(stored, name)
        if (one is None) != (other is None) or (one is not None and one.tolist() != other.tolist()):
            if name == "target" and one is not None and str(one.tolist()) == str(other.tolist()):
                continue  # NaN, which is not even itself
            raise ViolationError(f"{name} differ: {one!r:.200} and {other!r:.200}")


def _outcome(make: Callable[[], Graphs]) -> tuple[Graphs | None, EgoCNNError | None]:
    try:
        return make(), None
    except EgoCNNError as error:
        return None, error


def _store(portions: Any, folder: Path, facts: Any) -> Graphs:
    write_store(portions, folder, facts=facts)
    return Store.open(folder).graphs()


def _read_store(path: Path, number: int) -> None:
    store = Store.open(path)
    for portion in store.portions(None if number & 16 else 1):
        portion.validate()
    graphs = store.graphs()
    for graph in graphs[:3]:
        str(graph)


def _read_run(path: Path, number: int) -> None:
    if number & 48 == 0:
        seals.checkpoint(path, seeds.FINGERPRINT).resume([seeds.progress(number >> 6 & 1)])
        return
    if number & 48 == 16:
        finished_metrics(path, seeds.FINGERPRINT)
    predictor = seals.load_run(path)
    outputs = predictor.outputs(seeds.graphs(), device="cpu")
    if outputs.shape != (2, len(predictor.class_names) or 1):
        raise ViolationError(f"outputs of shape {outputs.shape}")


def _read_records(path: Path, _: int) -> None:
    refusals = []
    for call in (
        lambda: list(read_structures(path / "structures.jsonl")) if (path / "structures.jsonl").is_file() else None,
        lambda: read_record(path / "record.json"),
        lambda: PartialRecord.open(path / "record.json", "f", {"model": "a"}, overwrite=False),
    ):
        try:
            call()
        except EgoCNNError as error:
            check_refusal(error, path)
            refusals.append(error)
    if refusals:
        raise refusals[0]


def _read_objects(path: Path, number: int) -> None:
    try:
        items = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return  # objects come from programs, which have read their JSON themselves
    if isinstance(items, str):
        return  # that is the name of a file or of a set, and other targets read those
    graphs = [_object(item) for item in items] if isinstance(items, list) else _object(items)
    _check(read(graphs, _options(number)))


def _object(value: Any) -> Any:
    """An object with an edge_index, or a networkx graph, or the value itself."""
    if not isinstance(value, dict):
        return value
    if "edge_index" in value:
        return SimpleNamespace(**value)
    if "nodes" in value:
        import networkx

        graph: Any = networkx.MultiGraph()
        try:
            graph.add_nodes_from([tuple(node) for node in value["nodes"]])
            graph.add_edges_from([tuple(edge) for edge in value.get("edges", ())])
            graph.graph.update(value.get("graph", {}))
        except (networkx.NetworkXError, TypeError, ValueError, LookupError, AttributeError):
            return graph
        return graph
    return value


def _read_name(path: Path, _: int) -> None:
    name = path.read_bytes().decode("utf-8", "surrogateescape")
    # any other name is that of a file, which other targets read, or of a set to fetch, and nothing is fetched here
    name = name if name.startswith("compounds:") else f"compounds:{name}"
    with suppress(EgoCNNError):
        asked = AlcoholsConfig(**parse_options(name, name.partition(":")[2].partition(":")[2] or None))
        first, last = asked.sizes
        if last * (last + 1 - first) * max(asked.per_size, PER_TEST_SIZE) > MOST_GENERATED:
            return  # whoever asks for many compounds gets them, in the time that takes
    read(name)


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("csv", lambda: seeds.CSV, _table, _read, words.SMILES, limits=TABLES),
        Target("sdf", lambda: seeds.SDF, _file(".sdf"), _read, words.SDF),
        Target("jsonl", lambda: seeds.JSONL, _file(".jsonl", ".ndjson", ".json"), _read, words.JSON),
        Target("graphml", lambda: seeds.GRAPHML, _file(".graphml"), _read, words.XML),
        Target("gexf", lambda: seeds.GEXF, _file(".gexf"), _read, words.XML),
        Target("tu", seeds.sets, _files, _read_set, words.TU),
        Target("zip", seeds.zips, _zip, _read_set, words.ZIP),
        Target("safetensors", seeds.saved, _file(".safetensors"), _read_saved, words.TENSORS),
        Target("objects", lambda: seeds.OBJECTS, _file(".txt"), _read_objects, words.JSON),
        Target("names", lambda: seeds.NAMES, _file(".txt"), _read_name, words.NAMES),
        Target("rows", lambda: (*seeds.JSONL, *seeds.CSV), _rows, _read_rows, words.JSON, limits=SERVED),
        Target("prepare-csv", lambda: seeds.CSV, _table, _prepare, words.SMILES, writable=True, limits=TABLES),
        Target("prepare-sdf", lambda: seeds.SDF, _file(".sdf"), _prepare, words.SDF, writable=True),
        Target("prepare-jsonl", lambda: seeds.JSONL, _file(".jsonl"), _prepare, words.JSON, writable=True),
        Target("store", seeds.stores, _sealed(seals.seal_store), _read_store, words.JSON),
        Target("run", seeds.runs, _sealed(seals.seal_run), _read_run, (*words.TENSORS, *words.JSON)),
        Target("records", seeds.records, _files, _read_records, words.JSON, writable=True),
        Target("serve", lambda: requests.REQUESTS, _file(".txt"), requests.answer, words.REQUESTS, True, limits=SERVED),
        Target("outputs", lambda: seeds.TEXTS, _file(".txt"), check_outputs, (b"|", b"<script>", b"on", b"=", b"`")),
    )
}
