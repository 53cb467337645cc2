"""Shards of as many different SMILES as are asked for: the molecules at hand, cut into pieces and put together anew.

    python -m lab molecules 1000000 -o shards --seed 0 --broken 0.01

Pieces are what RDKit's BRICS rules cut molecules into; two or three of them are joined where the rules allow it. The
same seed gives the same shards, and the first shards of a larger number. A share of the rows may be broken, in turn in
every way of ``BROKEN``; the column ``broken`` says in which. EGOCNN_DATA names the folder that holds molecules/.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from egocnn.data.sources.smiles import parse_smiles
from egocnn.data.sources.text import arrow
from egocnn.errors import DataError
from egocnn.show.tables import table_writer

SOURCES = ("bbbp", "esol", "lipo", "tox21")
SIZES = range(8, 46)  # heavy atoms
DUMMY = re.compile(r"\[(\d+)\*\]")
BROKEN: dict[str, str | None] = {
    "ring never closed": "C1CCCC",
    "bracket never closed": "CC(C[NH3+",
    "parenthesis never closed": "CC(CC(C",
    "no such element": "CC[Xx]CC",
    "too many bonds": "CC(C)(C)(C)(C)C",
    "cannot be aromatic": "c1cccc1C",
    "not ASCII": "CC\u03b2CC",
    "no SMILES": "not a molecule",
    "a control character": "CC\x07CC",
    "too long": "C" * 5001,
    "empty": "",
    "missing": None,
}


def pieces(folder: Path, most: int = 4000) -> dict[int, list[tuple[str, list[int]]]]:
    """By the number of their open ends (1 or 2): pieces as SMILES with numbered ends, and the rules of these ends."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import BRICS

    texts = []
    for name in SOURCES:
        with (folder / "molecules" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            texts += [row["smiles"] for row in csv.DictReader(file)]
    random.Random(0).shuffle(texts)
    found: dict[str, list[int]] = {}
    cut: Any = BRICS.BreakBRICSBonds
    with rdBase.BlockLogs():
        for text in texts[:most]:
            try:
                whole = parse_smiles(text)
            except DataError:  # the sets hold a few that are none
                continue
            if "." in text:
                continue
            for part in Chem.GetMolFrags(cut(whole), asMols=True):
                smiles = Chem.MolToSmiles(part)
                found[smiles] = [int(end) for end in DUMMY.findall(smiles)]
    return {n: sorted((text, ends) for text, ends in found.items() if len(ends) == n) for n in (1, 2)}


def recombined(folder: Path, seed: int) -> Iterator[str]:
    """Different SMILES, one after the other, for ever."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import BRICS

    rules: Any = BRICS.reactionDefs
    fits = {(int(a), int(b)) for group in rules for a, b, bond in group if bond == "-" and (a + b).isdecimal()}
    fits |= {(b, a) for a, b in fits}
    by_ends, draw, seen = pieces(folder), random.Random(seed), set[bytes]()
    partners = {end: [text for text, (own,) in by_ends[1] if (end, own) in fits] for end in range(1, 17)}
    while True:
        text, ends = draw.choice(by_ends[draw.choice((1, 2, 2, 2))])
        if not all(partners[end] for end in ends):
            continue
        others = [DUMMY.sub(f"[*:{n}]", draw.choice(partners[end])) for n, end in enumerate(ends, 1)]
        for n in range(1, len(ends) + 1):
            text = DUMMY.sub(f"[*:{n}]", text, count=1)
        joined = ".".join([text, *others])
        with rdBase.BlockLogs():
            molecule: Any = Chem.MolFromSmiles(joined)
            try:
                molecule = molecule and Chem.molzip(molecule)
                if molecule is None or molecule.GetNumHeavyAtoms() not in SIZES:
                    continue
                Chem.SanitizeMol(molecule)
                smiles = Chem.MolToSmiles(molecule)
            except (RuntimeError, ValueError):
                continue
        if "*" not in smiles and (key := blake2b(smiles.encode(), digest_size=8).digest()) not in seen:
            seen.add(key)
            yield smiles


def write_shards(out: Path, count: int, rows: int, seed: int, broken: float = 0.0) -> list[Path]:
    """``count`` rows in files of ``rows`` each; of these a share is broken."""
    arrow()
    out.mkdir(parents=True, exist_ok=True)
    source = recombined(Path(os.environ.get("EGOCNN_DATA", "nowhere")), seed)
    ways, every = cycle(BROKEN), round(1 / broken) if broken else 0
    written = []
    for first in range(0, count, rows):
        numbers = range(first, min(first + rows, count))
        table = []
        for number, smiles in zip(numbers, islice(source, len(numbers)), strict=True):
            way = next(ways) if every and number % every == every - 1 else None
            table.append({"smiles": BROKEN[way] if way else smiles, "key": f"m{number}", "broken": way})
        written.append(out / f"part-{first // rows:05d}.parquet")
        with table_writer(written[-1], dict.fromkeys(("smiles", "key", "broken"), "string")) as write:
            write(table)
    return written


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lab molecules", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, metavar="N", help="how many rows")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FOLDER", help="where the shards go")
    parser.add_argument("--rows", type=int, default=50_000, metavar="N", help="rows of a shard [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="every random choice follows from it [0]")
    parser.add_argument("--broken", type=float, default=0.0, metavar="SHARE", help="share of broken rows [0]")
    options = parser.parse_args(words)
    for path in write_shards(options.out, options.count, options.rows, options.seed, options.broken):
        print(path)
