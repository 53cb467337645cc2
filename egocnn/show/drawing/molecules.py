"""A molecule as RDKit draws it, importances as tints beneath it, critical parts inside a contour."""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.show.drawing.picture import INK, LEAST, WHITE, Picture, channels, mix, signed
from egocnn.show.drawing.scene import Discs, Lines, Shape, Text, strip, to_svg

CONTOUR = 0.46  # Distance of the contour from critical atoms, in bond lengths.
TENTHS = 400.0  # A bond of the line work of a page: 40 units, in tenths.
STROKE = re.compile(r"<path class='bond-\d+ atom-(\d+) atom-(\d+)' d='([^']*)' style='([^']*)'")
LETTER = re.compile(r"<text x='([^']*)' y='([^']*)' class='atom-(\d+)' style='font-size:(\d+)px[^>]*>([^<]*)<")


def molecule_svg(picture: Picture, molecule: Any, placed: Floats) -> str:
    """The molecule with its atoms at ``placed`` (N, 2)."""
    drawer = _drawer(picture, "MolDraw2DSVG")
    at = _draw(drawer, molecule, placed, picture.unit)
    drawer.FinishDrawing()
    body = drawer.GetDrawingText().split("<!-- END OF HEADER -->")[1].rsplit("</svg>", 1)[0]
    return to_svg(picture, _tints(picture, at), body, strip(picture)[0])


def write_molecule_png(picture: Picture, molecule: Any, placed: Floats, path: Path) -> None:
    """The same picture as PNG."""
    at = _draw(_drawer(picture, "MolDraw2DSVG"), molecule, placed, picture.unit)
    drawer = _drawer(picture, "MolDraw2DCairo")
    _draw(drawer, molecule, placed, picture.unit)  # fixes the scale
    drawer.ClearDrawing()
    _play(drawer, _tints(picture, at))
    _draw(drawer, molecule, placed, picture.unit)
    _play(drawer, strip(picture)[0])
    drawer.FinishDrawing()
    path.write_bytes(drawer.GetDrawingText())


def line_work(molecule: Any, edges: Ints, placed: Floats) -> tuple[Floats, Ints, Ints, str]:
    """RDKit's drawing as numbers, for a page to draw again: where the atoms lie, strokes, letters, their text. All in
    tenths of 1/40 of a bond, y downwards. A stroke: the number of its edge times 8 and its kind (0 a line, 1 a thin
    one, 2 a dashed one, from 3 on a filled polygon of so many corners), points. A letter: its atom, x, base, size."""
    from rdkit.Chem.Draw import rdMolDraw2D

    drawer: Any = rdMolDraw2D.MolDraw2DSVG(-1, -1, -1, -1, True)  # as large as it needs to be, letters as text
    at = _draw(drawer, molecule, placed, 1.0)
    drawer.FinishDrawing()
    svg, ends = drawer.GetDrawingText(), at[edges].reshape(-1, 2, 2)
    scale = TENTHS / (float(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).mean()) if len(edges) else 30.0)
    number = {frozenset(pair): e for e, pair in enumerate(edges.tolist())}
    strokes: list[float] = []
    for u, v, path, look in STROKE.findall(svg):
        points = np.array(re.findall(r"-?[\d.]+", path), np.float64).reshape(-1, 2) * scale
        kind = 2 if "dasharray" in look else int(float(look.split("stroke-width:")[1].split("px")[0]) < 1)
        for run in [points[:7]] if "Z" in path else [points[i : i + 2] for i in range(len(points) - 1)]:
            strokes += [8 * number[frozenset((int(u), int(v)))] + (kind if len(run) < 3 else len(run)), *run.ravel()]
    letters = [(int(a), float(x) * scale, float(y) * scale, int(s) * scale) for x, y, a, s, _ in LETTER.findall(svg)]
    whole = (np.rint(np.maximum(np.ravel(some), 0)).astype(np.int64) for some in (strokes, letters))
    return at * scale, *whole, "".join(unescape(letter)[:1] for *_, letter in LETTER.findall(svg))


def _drawer(picture: Picture, kind: str) -> Any:
    from rdkit.Chem.Draw import rdMolDraw2D

    width, height = picture.size
    return getattr(rdMolDraw2D, kind)(width, height, width, int(height - strip(picture)[1]))


def _draw(drawer: Any, molecule: Any, placed: Floats, unit: float) -> Floats:
    """Draw the structure alone; returns where its atoms lie, in pixels."""
    from rdkit import Chem
    from rdkit.Chem.Draw import rdMolDraw2D
    from rdkit.Geometry import Point3D

    molecule = Chem.Mol(molecule)
    shape: Any = Chem.Conformer(molecule.GetNumAtoms())
    for atom, (x, y) in enumerate((1.5 * placed).tolist()):  # RDKit's bonds are 1.5 long
        shape.SetAtomPosition(atom, Point3D(x, y, 0.0))
    molecule.RemoveAllConformers()
    molecule.AddConformer(shape)
    try:
        molecule = rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=True, addChiralHs=False, forceCoords=False)
    except Chem.MolSanitizeException:  # what labels say of bonds need not be chemistry
        molecule = rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=False, addChiralHs=False, forceCoords=False)
    width = max(1.0, 1.6 * unit)
    # padding: room for the contour of an atom at the border
    set_options(drawer, padding=0.1, bondLineWidth=width, scaleBondWidth=False, fixedBondLength=48 * unit)
    set_options(drawer, minFontSize=5, maxFontSize=round(20 * unit))
    drawer.DrawMolecule(molecule)
    return np.array([(point.x, point.y) for point in map(drawer.GetDrawCoords, range(molecule.GetNumAtoms()))])


def set_options(drawer: Any, **settings: float) -> None:
    """Black lines on nothing, of a molecule that has been prepared; and these options."""
    options = drawer.drawOptions()
    options.useBWAtomPalette()
    options.prepareMolsBeforeDrawing = options.clearBackground = False
    for name, value in settings.items():
        setattr(options, name, value)


def _tints(picture: Picture, at: Floats) -> Iterator[Shape]:
    """What is not critical, then the contour, then what it holds: so that the contour is nowhere broken."""
    ends = at[picture.graph.edges].reshape(-1, 2, 2)
    lengths = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    length = float(lengths.mean()) if len(lengths) else 40 * picture.unit

    def highlights(*, critical: bool) -> Iterator[Shape]:
        for items in (picture.edges, picture.nodes):
            for which in np.argsort(items.strength, kind="stable").tolist():  # the strongest last
                strength = float(items.strength[which])
                if strength <= LEAST or items.critical[which] != critical:
                    continue
                # never the full colour, so that letters on it stay readable
                tint = mix(WHITE, signed(float(items.importance[which])), 0.12 + 0.63 * strength)
                if items is picture.edges:
                    yield Lines(ends[which][None], (0.14 + 0.4 * strength) * length, tint)
                else:
                    yield _round(at[which][None], (0.14 + 0.26 * strength) * length, tint)

    yield from highlights(critical=False)
    for colour, wider in ((INK, 1.3 * picture.unit), (WHITE, 0.0)):
        radius = CONTOUR * length + wider
        yield Lines(ends[picture.edges.critical], 2 * radius, colour)
        yield _round(at[picture.nodes.critical], radius, colour)
    yield from highlights(critical=True)


def _round(centres: Floats, radius: float, colour: str) -> Discs:
    return Discs(centres, np.full(len(centres), radius), colour)


def _play(drawer: Any, shapes: Iterable[Shape]) -> None:
    """Draw shapes on an RDKit canvas, in pixels."""
    from rdkit.Geometry import Point2D

    for shape in shapes:
        colour = shape.fill if isinstance(shape, Discs) else shape.colour
        drawer.SetColour(tuple(channel / 255 for channel in channels(colour or WHITE)))
        if isinstance(shape, Text):
            drawer.SetFontSize(shape.size)
            # RDKit puts the middle of the first letter where others put its edge
            start = Point2D(shape.x + 0.3 * shape.size, shape.y)
            drawer.DrawString(shape.text, start, 1, rawCoords=True)
            continue
        if isinstance(shape, Lines):
            drawer.SetLineWidth(shape.width)
            for (a, b), (c, d) in shape.ends.tolist():
                drawer.DrawLine(Point2D(a, b), Point2D(c, d), rawCoords=True)
            shape = _round(shape.ends.reshape(-1, 2), shape.width / 2, shape.colour)  # RDKit cuts the ends square
        drawer.SetFillPolys(True)
        drawer.SetLineWidth(0)
        for (x, y), r in zip(shape.centres.tolist(), shape.radii.tolist(), strict=True):
            drawer.DrawEllipse(Point2D(x - r, y - r), Point2D(x + r, y + r), rawCoords=True)
