"""The two colours stay apart for readers who do not see red, green or blue as most do."""

import numpy as np
import pytest

from egocnn.data.arrays import Floats
from egocnn.show.drawing.picture import AGAINST, FAINT, FOR, GREY, WHITE, channels, mix

# what is left of red, green and blue light (linear) at full severity, as Machado, Oliveira and Fernandes (2009) give it
VISION = {
    "normal": "1 0 0 0 1 0 0 0 1",
    "deuteranopia": "0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 -0.011820 0.042940 0.968881",
    "protanopia": "0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216 -0.003882 -0.048116 1.051998",
    "tritanopia": "1.255528 -0.076749 -0.178779 -0.078411 0.930809 0.147602 0.004733 0.691367 0.303900",
}


def seen(colour: str, vision: str) -> Floats:
    """CIE L*a*b* of a colour as someone with this vision sees it; 2.3 is a difference that can just be noticed."""
    value = np.array(channels(colour)) / 255
    light = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    light = np.clip(np.array(VISION[vision].split(), float).reshape(3, 3) @ light, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ light / np.array([0.9505, 1.0, 1.089]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
def test_for_and_against_differ_to_every_reader_and_so_do_their_light_tints(vision: str) -> None:
    assert np.linalg.norm(seen(FOR, vision) - seen(AGAINST, vision)) > 40
    light = [mix(FAINT, colour, 0.45) for colour in (FOR, AGAINST)]
    assert np.linalg.norm(seen(light[0], vision) - seen(light[1], vision)) > 20


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("colour", [FOR, AGAINST])
def test_what_counts_stands_out_from_what_recedes(vision: str, colour: str) -> None:
    for background in (WHITE, FAINT, GREY):
        assert np.linalg.norm(seen(colour, vision) - seen(background, vision)) > 20


def test_red_and_green_would_not_have_done() -> None:
    assert np.linalg.norm(seen("#bb0000", "deuteranopia") - seen("#447700", "deuteranopia")) < 20
