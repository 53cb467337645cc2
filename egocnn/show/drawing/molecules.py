"""A molecule as RDKit draws it, importances as tints beneath it, critical parts inside a contour."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.arrays import Bools, Floats
from egocnn.show.drawing.palette import INK, WHITE, channels, mix, signed
from egocnn.show.drawing.picture import LEAST, Part, Picture
from egocnn.show.drawing.scene import Discs, Lines, Scene, Shape, Text, strip, strip_height, to_svg

CONTOUR = 0.46
"""Distance of the contour from critical atoms, in bond lengths."""


def molecule_svg(picture: Picture, molecule: Any, placed: Floats) -> str:
    from rdkit.Chem.Draw import rdMolDraw2D

    width, height = picture.size
    drawer: Any = rdMolDraw2D.MolDraw2DSVG(width, height, width, _height(picture))
    at = _draw(drawer, picture, molecule, placed)
    drawer.FinishDrawing()
    body = drawer.GetDrawingText().split("<!-- END OF HEADER -->")[1].rsplit("</svg>", 1)[0]
    scene = Scene(picture.size, picture.caption or picture.graph.name, list(_tints(picture, at)))
    return to_svg(scene, body, strip(picture))


def write_molecule_png(picture: Picture, molecule: Any, placed: Floats, path: Path) -> None:
    from rdkit.Chem.Draw import rdMolDraw2D

    width, height = picture.size
    scratch: Any = rdMolDraw2D.MolDraw2DSVG(width, height, width, _height(picture))
    at = _draw(scratch, picture, molecule, placed)
    drawer: Any = rdMolDraw2D.MolDraw2DCairo(width, height, width, _height(picture))
    _draw(drawer, picture, molecule, placed)  # fixes the scale
    drawer.ClearDrawing()
    _play(drawer, list(_tints(picture, at)))
    _draw(drawer, picture, molecule, placed)
    _play(drawer, strip(picture))
    drawer.FinishDrawing()
    path.write_bytes(drawer.GetDrawingText())


def _height(picture: Picture) -> int:
    return int(picture.size[1] - strip_height(picture))


def _draw(drawer: Any, picture: Picture, molecule: Any, placed: Floats) -> Floats:
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
    molecule = rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=True, addChiralHs=False, forceCoords=False)
    options = drawer.drawOptions()
    options.prepareMolsBeforeDrawing = False
    options.clearBackground = False
    options.useBWAtomPalette()
    options.padding = 0.07
    options.bondLineWidth = max(1.0, 1.6 * picture.unit)
    options.scaleBondWidth = False
    options.fixedBondLength = 48 * picture.unit
    options.minFontSize = 5
    options.maxFontSize = round(20 * picture.unit)
    drawer.DrawMolecule(molecule)
    points = [drawer.GetDrawCoords(atom) for atom in range(molecule.GetNumAtoms())]
    return np.array([(point.x, point.y) for point in points])


def _tints(picture: Picture, at: Floats) -> Iterator[Shape]:
    """What is not critical, then the contour, then what it holds: so that the contour is nowhere broken."""
    ends = at[picture.graph.edges].reshape(-1, 2, 2)
    lengths = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    length = float(lengths.mean()) if len(lengths) else 40 * picture.unit
    nodes, edges = picture.nodes, picture.edges
    yield from _highlights(picture, at, length, critical=False)
    for colour, wider in ((INK, 1.3 * picture.unit), (WHITE, 0.0)):
        radius = CONTOUR * length + wider
        if edges.critical.any():
            yield Lines(ends[edges.critical], 2 * radius, colour)
        if nodes.critical.any():
            yield _round(at[nodes.critical], radius, colour)
    yield from _highlights(picture, at, length, critical=True)


def _highlights(picture: Picture, at: Floats, length: float, *, critical: bool) -> Iterator[Shape]:
    nodes, edges = picture.nodes, picture.edges
    for bond in _strongest_last(edges, critical):
        ends = at[picture.graph.edges[bond]]
        yield Lines(ends[None], (0.14 + 0.4 * edges.strength[bond]) * length, _tint(edges, bond))
    for atom in _strongest_last(nodes, critical):
        yield _round(at[atom : atom + 1], (0.14 + 0.26 * nodes.strength[atom]) * length, _tint(nodes, atom))


def _strongest_last(part: Part, critical: bool) -> list[int]:
    order = np.argsort(part.strength, kind="stable")
    shown: Bools = (part.strength[order] > LEAST) & (part.critical[order] == critical)
    return [int(i) for i in order[shown]]


def _tint(part: Part, which: int) -> str:
    """Never the full colour: the letters on it must stay readable."""
    return mix(WHITE, signed(float(part.importance[which])), 0.12 + 0.63 * float(part.strength[which]))


def _round(centres: Floats, radius: float, colour: str) -> Discs:
    return Discs(centres, np.full(len(centres), radius), colour)


def _play(drawer: Any, shapes: list[Shape]) -> None:
    """Draw shapes on an RDKit canvas, in pixels."""
    from rdkit.Geometry import Point2D

    for shape in shapes:
        if isinstance(shape, Text):
            drawer.SetColour(_rgb(shape.colour))
            drawer.SetFontSize(shape.size)
            # RDKit puts the middle of the first letter where others put its edge
            start = Point2D(shape.x + 0.3 * shape.size, shape.y)
            drawer.DrawString(shape.text, start, 1, rawCoords=True)
        elif isinstance(shape, Lines):
            drawer.SetColour(_rgb(shape.colour))
            drawer.SetLineWidth(shape.width)
            for (a, b), (c, d) in shape.ends.tolist():
                drawer.DrawLine(Point2D(a, b), Point2D(c, d), rawCoords=True)
            _fill_discs(drawer, _round(shape.ends.reshape(-1, 2), shape.width / 2, shape.colour))  # it cuts them square
        else:
            _fill_discs(drawer, shape)


def _fill_discs(drawer: Any, discs: Discs) -> None:
    from rdkit.Geometry import Point2D

    if discs.fill is None:
        return
    drawer.SetColour(_rgb(discs.fill))
    drawer.SetFillPolys(True)
    drawer.SetLineWidth(0)
    for (x, y), r in zip(discs.centres.tolist(), discs.radii.tolist(), strict=True):
        drawer.DrawEllipse(Point2D(x - r, y - r), Point2D(x + r, y + r), rawCoords=True)


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(channel / 255 for channel in channels(colour))
