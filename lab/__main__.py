"""Words of the command line -> a table, a figure, a benchmark or a measurement; without any, the list of them all.

python -m lab                          what there is
python -m lab reproduce NAME …         the same as egocnn reproduce
python -m lab bench NAME …             the same as egocnn bench
python -m lab measure NAME …           a script that measures one thing on this machine
python -m lab truths PART …            tasks of known truth: make, halves, score
python -m lab molecules N -o FOLDER …  shards of N different molecules, to predict
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

CPU = ("cpu_step", "explain_speed", "networks", "prepare", "read_collab", "serve_load", "serve_soak", "throughput")

SCRIPTS = {
    **dict.fromkeys((*CPU, "two_processes"), "cpu"),
    **dict.fromkeys(("device_agreement", "engine_agreement", "explain_agreement"), "agreement"),
    **dict.fromkeys(
        ("huge_graphs", "kills", "large_graph", "large_store", "out_of_memory", "shard_kills", "shard_memory"), "limits"
    ),
    "default_search": "search",
    "preset_search": "search",
    "real_structures": "real",
}
"""What ``measure`` runs, and the folder of lab/bench that each stands in."""

TRUTHS = (
    "make                write every task whose truth is known as files that are read without RDKit",
    "halves              write which tasks choose settings and which are only reported",
    "score               train, explain and score on every task",
)


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else list(words)
    if not words or words[0] in ("--list", "-l"):
        print(overview())
        return 0
    if words[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if words[0] in ("reproduce", "bench"):
        from egocnn.cli import main as egocnn

        return egocnn(words)
    if words[0] == "measure":
        return measure(words[1:])
    if words[0] == "truths":
        return truths(words[1:])
    if words[0] == "molecules":
        return molecules(words[1:])
    parts = "reproduce, bench, measure, truths and molecules"
    return _refuse(f"no part of the lab is called {words[0]!r}; there are {parts}")


def measure(words: Sequence[str]) -> int:
    """Run one script; its name and then its own options."""
    if not words or words[0] in ("-h", "--help", "--list"):
        print("\n".join(script_names()))
        return 0
    name, *rest = words
    if name not in SCRIPTS:
        return _refuse(f"nothing to measure is called {name!r}; there are {', '.join(SCRIPTS)}")
    from egocnn.errors import EgoCNNError

    try:
        import_module(f"lab.bench.{SCRIPTS[name]}.{name}").main(rest)
    except EgoCNNError as error:
        return _refuse(str(error))
    return 0


def truths(words: Sequence[str]) -> int:
    """Make the tasks of known truth, or score networks on them."""
    from egocnn.errors import EgoCNNError
    from lab.truths.suite import command

    try:
        command.main(words)
    except EgoCNNError as error:
        return _refuse(str(error))
    return 0


def molecules(words: Sequence[str]) -> int:
    """Write shards of molecules."""
    from egocnn.errors import EgoCNNError
    from lab import molecules

    try:
        molecules.main(words)
    except (EgoCNNError, FileNotFoundError) as error:
        return _refuse(str(error))
    return 0


def overview() -> str:
    from lab.bench import named
    from lab.reproduce import names

    parts = {"reproduce": names(), "bench": named.names(), "measure": script_names()}
    listed = [f"python -m lab {part} NAME\n" + "\n".join(lines) for part, lines in parts.items()]
    return "\n\n".join([*listed, "python -m lab truths PART\n" + "\n".join(TRUTHS)])


def script_names() -> list[str]:
    """A line for each: the first of its docstring, read without importing the script."""
    lines = []
    for name, folder in SCRIPTS.items():
        path = Path(__file__).parent / "bench" / folder / f"{name}.py"
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines.append(f"{name:20}{text.splitlines()[0]}")
    return lines


def _refuse(reason: str) -> int:
    print(f"lab: {reason}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
