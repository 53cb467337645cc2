"""The picture of the README: runs trained on BBBP and ESOL -> docs/pictures/molecules.png.

egocnn train bbbp.csv --target y --split scaffold0 -o runs/bbbp --seed 3
egocnn train esol.csv --target y --split scaffold0 -o runs/esol
python docs/make_molecules.py runs/bbbp bbbp.csv runs/esol esol.csv

Nothing in it is drawn by hand: these are the first molecules of the test parts that are surely and rightly
predicted and have a structure and both colours.
It is a PNG, as a browser (chromium) makes it of the drawings, so that it also shows on a package index.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from html import escape
from pathlib import Path

import egocnn
from egocnn.files import write_text

PICTURE = Path(__file__).resolve().parent / "pictures" / "molecules.png"
WIDTH, HEIGHT, BELOW = 400, 290, 44
SURE = 0.8
FIRST = 30
"""Molecules of a test part that are looked through."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("bbbp", "bbbp_table", "esol", "esol_table"):
        parser.add_argument(name)
    given = parser.parse_args()
    against, for_it = (_first(given.bbbp, given.bbbp_table, predicted) for predicted in ("0", "1"))
    soluble = _first(given.esol, given.esol_table, None)
    panels = [
        (against, "Does not cross the blood-brain barrier", f"probability {against.probability:.0%}"),
        (for_it, "Crosses the blood-brain barrier", f"probability {for_it.probability:.0%}"),
        (soluble, "Solubility in water", f"predicted {soluble.predicted:.1f} log mol per litre"),
    ]
    shapes = []
    for number, (structure, title, answer) in enumerate(panels):
        picture = structure.draw(size=(WIDTH, HEIGHT)).replace("<svg ", f'<svg x="{number * WIDTH}" y="0" ', 1)
        middle = number * WIDTH + WIDTH // 2
        shapes += [picture, _text(middle, HEIGHT + 16, title, 17), _text(middle, HEIGHT + 36, answer, 14)]
    size = f'width="{3 * WIDTH}" height="{HEIGHT + BELOW}" viewBox="0 0 {3 * WIDTH} {HEIGHT + BELOW}"'
    white = '<rect width="100%" height="100%" fill="#ffffff"/>'
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / "molecules.svg"
        write_text(drawn, f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{white}{"".join(shapes)}</svg>')
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--force-device-scale-factor=1.5",
            "--hide-scrollbars",
        ]
        shot = [f"--screenshot={PICTURE}", f"--window-size={3 * WIDTH},{HEIGHT + BELOW}"]
        command = ["chromium", *options, f"--user-data-dir={folder}/browser", *shot, drawn.as_uri()]
        subprocess.run(command, check=True, capture_output=True)


def _first(run: str, table: str, predicted: str | None) -> egocnn.CriticalStructure:
    """The first molecule that is surely and rightly predicted so, with a structure and contributions of both signs"""
    graphs = egocnn.read(table, target="y", split="scaffold0").select("test")
    structures: list[egocnn.CriticalStructure] = egocnn.load(run).explain(graphs[:FIRST])
    for structure in structures:
        signed = structure.node_importance
        is_both = min(signed.max(), -signed.min()) > 0.25 * abs(signed).max()
        is_right = predicted is None or predicted == str(structure.predicted) == str(structure.graph.target)
        is_sure = structure.probability is None or structure.probability >= SURE
        if is_both and is_right and is_sure and len(structure.critical_nodes):
            return structure
    raise SystemExit(f"{table}: no such molecule among the first {FIRST}")


def _text(x: float, y: float, text: str, size: int) -> str:
    style = f'font-family="sans-serif" font-size="{size}" fill="#333333" text-anchor="middle"'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'


if __name__ == "__main__":
    main()
