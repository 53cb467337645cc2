"""Degrees -> their log-log plot."""

from pathlib import Path

import numpy as np
import pytest

from egocnn.data.scalefree import Counts, fit_power_law
from egocnn.errors import DataError
from lab.figures.degrees import binned, draw_degrees
from tests.data.test_scalefree import zipf


@pytest.mark.parametrize("largest", [1, 2, 4, 13, 1000])
def test_bins_of_degrees_hold_all_nodes_of_their_degrees(largest: int) -> None:
    counts = Counts(np.arange(1, largest + 1), np.full(largest, 7))
    middle, mean = binned(counts)
    assert (mean == 7).all()
    assert len(middle) == 0 if largest <= 12 else (middle <= largest).all()


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_picture_is_the_same_every_time(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    counts = Counts.of(zipf(2.3, 3000, seed=0))
    for name in ("one", "other"):
        draw_degrees(counts, fit_power_law(counts), tmp_path / f"{name}.{kind}", title="drawn")
    assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"other.{kind}").read_bytes()
    with pytest.raises(DataError, match=r"written as \.svg or \.png"):
        draw_degrees(counts, None, tmp_path / "one.pdf")
    with pytest.raises(DataError, match="no node has a neighbour"):
        draw_degrees(Counts.of(np.zeros(3, int)), None, tmp_path / "one.svg")
