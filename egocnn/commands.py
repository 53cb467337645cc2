"""What every command does: options -> calls of the library, results -> text or JSON. They only translate.

torch and the rest are imported inside the commands, so that ``egocnn --help`` answers at once.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egocnn.asked_data import read_data, read_or_leave, read_portions
from egocnn.config import ExplainConfig, ModelConfig, ReadConfig, TrainConfig
from egocnn.errors import DataError
from egocnn.options import from_options

if TYPE_CHECKING:
    from egocnn.graphs import Graphs
    from egocnn.predictor import Predictor
    from egocnn.report import Summary
    from egocnn.store import Stored
    from egocnn.structure import CriticalStructure


def info(options: argparse.Namespace) -> None:
    from egocnn.describe import describe_portions

    facts = describe_portions(read_portions(options)[0])
    problems = facts["problems"]
    if options.json:
        _print_json(facts)
        return
    for name, value in facts.items():
        if name != "problems" and value not in ({}, None):
            shown = ", ".join(f"{k}: {v}" for k, v in value.items()) if isinstance(value, dict) else value
            print(f"{name.replace('_', ' '):16}{f'{shown:.2f}' if isinstance(shown, float) else shown}")
    for problem in problems:
        print(f"note            {problem}")


def prepare(options: argparse.Namespace) -> None:
    from egocnn.streaming import prepare

    column, _, part = (options.split or "").partition("=")
    config = replace(from_options(options, ReadConfig), split=column or None)
    store = prepare(options.data, options.out, config, part=part, limit=options.limit, overwrite=options.overwrite)
    if options.json:
        counts = {"graphs": store.graphs, "nodes": store.nodes, "adjacency_entries": store.entries}
        _print_json({**counts, "bytes": store.size, "store": str(options.out)})
    else:
        print(f"{store.graphs:,} graphs, {store.nodes:,} nodes, {store.size / 1e6:,.1f} MB: {options.out}")


def train(options: argparse.Namespace) -> None:
    from egocnn.distributed.world import World, joined

    with joined(World.here(), device=options.device):
        _train(options, read_or_leave(options), options.data)


def _train(options: argparse.Namespace, graphs: Graphs | Stored, source: str) -> dict[str, Any]:
    from egocnn.distributed.world import World
    from egocnn.progress import tensorboard_report, training_report
    from egocnn.run_folder import growing_place
    from egocnn.streaming import how_read
    from egocnn.torchrun import train_by_rank

    config = from_options(options, TrainConfig)
    visible = not options.quiet and World.here().rank == 0
    with training_report(config, visible=visible) as report:
        metrics = train_by_rank(
            graphs,
            options.out,
            from_options(options, ModelConfig),
            config,
            test=options.test,
            about={"data": source, "read": how_read(source, from_options(options, ReadConfig))},
            resume=options.resume,
            overwrite=options.overwrite,
            report=report,
            log=tensorboard_report if options.tensorboard else None,
        )
    is_beside = metrics["interrupted"] and options.overwrite
    place = growing_place(options.out) if is_beside else options.out
    if options.json:
        _print_json(metrics)
    else:
        _print_scores(metrics, place)
    if metrics["interrupted"]:
        how = f"{options.out} is as it was, the same command goes on" if is_beside else "--resume goes on from there"
        raise KeyboardInterrupt(f"stopped; the best model so far is in {place}, and {how}")
    return metrics


def crossval(options: argparse.Namespace) -> None:
    from egocnn.crossval import compare, cross_validate, from_command, sentence
    from egocnn.progress import counting_report

    if options.out is not None:
        _check_file(options.out, options.data)
    asked = from_command(options)
    can_stay = isinstance(asked.model, ModelConfig) and not options.stack
    with counting_report("cross-validating", asked.epochs, visible=not options.quiet) as report:
        silent = options.quiet or report is not None
        result = cross_validate(
            read_or_leave(options) if can_stay else read_data(options),
            asked.model,
            asked.train,
            protocol=asked.protocol,
            stack=options.stack,
            jobs=options.jobs,
            ray=options.ray,
            data=options.data,
            out=options.out,
            overwrite=options.overwrite,
            report=report,
            say=None if silent else _to_stderr,
        )
    if options.json:
        compared = {"comparison": compare(result, asked.against).to_plain()} if asked.against else {}
        _print_json({**result.to_plain(), **compared})
    else:
        print("\n".join([*result.lines(), *([sentence(result, asked.against)] if asked.against else [])]))


def sweep(options: argparse.Namespace) -> None:
    from egocnn.sweep.command import run

    run(options, read_data if options.stack else read_or_leave)


def predict(options: argparse.Namespace) -> None:
    from egocnn.predictor import Predictor
    from egocnn.streaming import predict_to_csv

    _check_file(options.out, options.data)
    predictor = Predictor.load(options.run_folder)
    portions, _ = read_portions(options, predictor)
    result = predict_to_csv(predictor, portions, options.out, device=options.device)
    if options.json:
        _print_json(result)
    else:
        scores = ", ".join(f"{k.replace('_', ' ')} {v:.4f}" for k, v in result.items() if isinstance(v, float))
        print(f"{result['graphs']} predictions in {options.out}" + (f" ({scores})" if scores else ""))


def explain(options: argparse.Namespace) -> None:
    from egocnn.explaining import check_folder, write_explanations
    from egocnn.predictor import Predictor
    from egocnn.streaming import ON_PAGE, first_noted

    check_folder(options.out)
    predictor = Predictor.load(options.run_folder)
    portions, count = read_portions(options, predictor)
    shown: list[CriticalStructure] = []
    summary = write_explanations(
        first_noted(_structures(options, predictor, portions, count), options.show, shown),
        options.out,
        model=str(options.run_folder),
        data=options.data,
        class_names=predictor.class_names,
        figures=options.figures,
        on_page=None if isinstance(portions, list) else ON_PAGE,
    )
    _tell_explained(options, shown, summary)


def patterns(options: argparse.Namespace) -> None:
    from egocnn.explaining import check_folder
    from egocnn.patterns import find_patterns, write_patterns
    from egocnn.predictor import Predictor

    check_folder(options.out)
    predictor = Predictor.load(options.run_folder)
    graphs = read_data(options, predictor)
    structures = list(_structures(options, predictor, [graphs], len(graphs), fidelity=False))
    found = find_patterns(structures, min_support=options.min_support, most=options.most, data=Path(options.data).stem)
    page = write_patterns(found, options.out, title=f"Patterns in {Path(options.data).name}")
    if options.json:
        _print_json({"graphs": len(structures), "page": str(page), "patterns": [p.to_plain() for p in found]})
        return
    for pattern in found:
        print(f"{pattern.class_name}: {pattern.sentence}")
    print(f"{len(found)} pattern{'' if len(found) == 1 else 's'} in {len(structures)} graphs: open {page}")


def export(options: argparse.Namespace) -> None:
    from egocnn.export import export_onnx
    from egocnn.predictor import Predictor

    _check_file(options.out, str(options.run_folder))
    exported = export_onnx(Predictor.load(options.run_folder), options.out, seed=options.seed)
    if options.json:
        _print_json(asdict(exported))
    else:
        print(exported)


def scale_free(options: argparse.Namespace) -> None:
    from egocnn.progress import counting_report
    from egocnn.scalefree import Counts, assess, check_plot, draw_degrees, lines

    if options.out is not None:
        _check_file(options.out, options.data)
        check_plot(options.out)
    graphs = read_data(options)
    with counting_report("drawing samples", options.samples, visible=not options.quiet) as report:
        judgement = assess(graphs, samples=options.samples, seed=options.seed, library=options.powerlaw, report=report)
    if options.out is not None:
        draw_degrees(Counts.of(graphs.degree), judgement.law, options.out, title=Path(options.data).stem)
    if options.json:
        _print_json(judgement.to_plain())
    else:
        print("\n".join(lines(judgement)))


def _structures(
    options: argparse.Namespace, predictor: Predictor, portions: Iterable[Graphs], count: int, *, fidelity: bool = True
) -> Iterator[CriticalStructure]:
    """Structures in order, ``count`` of them at most."""
    from egocnn.critical import fit_attention, load_attention, save_attention
    from egocnn.progress import counting_report
    from egocnn.streaming import explain_portions

    config = from_options(options, ExplainConfig)
    attention = None
    if config.technique == "paper":
        attention = load_attention(options.run_folder, predictor)
        if attention is None:
            graphs = portions[0] if isinstance(portions, list) else read_data(options, predictor)
            attention = fit_attention(predictor, graphs, seed=options.seed, device=options.device)
            try:
                save_attention(attention, options.run_folder)
            except OSError as error:  # a model that may only be read can be explained all the same
                _to_stderr(f"egocnn: {options.run_folder}: the attention layer is not kept ({error.strerror or error})")
    with counting_report("explaining", count, visible=not options.quiet) as report:
        yield from explain_portions(
            predictor,
            portions,
            config,
            report,
            classes=options.explained,
            attention=attention,
            fidelity=fidelity,
            device=options.device,
        )


def _tell_explained(options: argparse.Namespace, structures: Sequence[CriticalStructure], summary: Summary) -> None:
    from egocnn.report import sentences

    if options.json:
        _print_json({**asdict(summary), "page": str(options.out / "index.html")})
        return
    for structure in structures:
        print(structure)
    for line in sentences(summary):
        print(line)
    print(f"{summary.graphs} critical structures: open {options.out / 'index.html'}")


def demo(options: argparse.Namespace) -> None:
    from egocnn.explaining import write_explanations
    from egocnn.predictions import predictions, write_csv
    from egocnn.predictor import Predictor
    from egocnn.reading import read

    source = "compounds:alcohols"
    graphs = read(source)
    if not options.json:
        print(
            f"{len(graphs)} generated alkanes and alcohols; the {len(graphs.select('test'))} for the test are of sizes "
            "never trained on"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    run = options.out / "run"
    quick = argparse.Namespace(
        **vars(options) | {"out": run, "test": 0.2, "resume": False, "overwrite": True, "tensorboard": False}
    )
    _train(quick, graphs, source)
    predictor, held_out = Predictor.load(run), graphs.select("test")
    write_csv(list(predictions(predictor, held_out, device=options.device)), options.out / "predictions.csv")
    structures = list(_structures(options, predictor, [held_out], len(held_out)))
    report = options.out / "report"
    write_explanations(
        structures, report, model=str(run), data=source, class_names=predictor.class_names, figures=24, title="Alcohols"
    )
    if not options.json:
        print(f"predictions for the test molecules: {options.out / 'predictions.csv'}")
        print(f"what made the model say so:         {report / 'index.html'}  (open it in a browser)")
        print(f"the model again on your own data:   egocnn explain {run} DATA -o REPORT")


def reproduce(options: argparse.Namespace) -> None:
    from egocnn.experiments import names, run

    if options.list or options.name is None:
        print("\n".join(names()))
        return
    result, text = run(options, (lambda _: None) if options.quiet else _to_stderr)
    if options.json:
        _print_json(result)
    else:
        print(text)


def bench(options: argparse.Namespace) -> None:
    from egocnn.bench import BENCHMARKS, bench, chart, default_file, markdown

    if options.list or options.name is None:
        for name, benchmark in BENCHMARKS.items():
            print(f"{name:12}{benchmark.title}")
        print(f"{'chart':12}The records of all benchmarks as one picture, and as the tables of docs/benchmarks.md")
        return
    if options.name == "chart":
        written = chart(options.results, options.out or Path("docs/benchmarks.svg"))
        print("\n".join(map(str, written)) if not options.json else json.dumps({"files": list(map(str, written))}))
        return
    out = options.out or (None if options.quick else default_file(options.name, device=options.device))
    if out is not None:
        _check_file(out, options.name)
    tell = (lambda _: None) if options.quiet else _to_stderr
    record = bench(options.name, out=out, device=options.device, quick=options.quick, seed=options.seed, say=tell)
    if options.json:
        _print_json(record)
    else:
        print(markdown(record))


# ── in and out ────────────────────────────────────────────────────────────────────────────────────


def _check_file(path: Path, data: str) -> None:
    """Refuse, before anything is computed, a path that no file can be written to, or that is the data itself."""
    from egocnn.files import check_writable

    if path.exists() and Path(data).exists() and path.samefile(data):
        raise DataError(f"{path}: is the data to be read; name another file to write")
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name the file to write")
    for place in path.parents:
        if place.is_file():
            raise DataError(f"{place}: is a file, not a folder")
    check_writable(path)


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print_json(value: Any) -> None:
    from egocnn.files import finite_json

    print(finite_json(value))


def _print_scores(metrics: dict[str, Any], folder: Path) -> None:
    for name in ("validation_accuracy", "validation_r2", "test_accuracy", "test_r2", "test_mean_absolute_error"):
        if metrics.get(name) is not None:
            graphs = f" ({metrics['test_graphs']} graphs)" if name.startswith("test") else ""
            print(f"{name.replace('_', ' '):20} {metrics[name]:.4f}{graphs}")
    print(f"{metrics['parameters']:,} parameters, best of {metrics['epochs']} epochs: {metrics['best_epoch']}")
    print(f"run folder: {folder}")
