"""Degrees -> the same figures by the powerlaw library: a second opinion by other hands."""

from __future__ import annotations

import warnings
from typing import Any

from egocnn.data.arrays import Ints
from egocnn.data.scalefree.fit import EXPONENTS, PowerLaw
from egocnn.errors import MissingExtraError


def second_opinion(degrees: Ints, law: PowerLaw) -> dict[str, Any]:
    """Exponent, distance and both ratio tests for the tail that ``law`` starts at.

    The start is ours: by default the library passes over starts with an exponent above 3, and its search among the
    degrees of a million nodes takes many times as long.
    """
    try:
        import powerlaw
    except ImportError:
        raise MissingExtraError("powerlaw", "powerlaw") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # remarks on how its optimiser fares: the figures are what counts
        fit = powerlaw.Fit(
            degrees[degrees >= law.start],
            discrete=True,
            xmin=law.start,
            parameter_ranges={"alpha": list(EXPONENTS)},
            verbose=0,
        )
        own = fit.power_law
        plain: dict[str, Any] = {"exponent": float(own.alpha), "distance": float(own.D)}
        for name, theirs in (("log_normal", "lognormal"), ("exponential", "exponential")):
            z, p = fit.distribution_compare("power_law", theirs, normalized_ratio=True)
            plain[name] = {"z": float(z), "p": float(p)}
    return plain
