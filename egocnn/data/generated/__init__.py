"""Molecules whose critical structure is known, generated from a seed: CompoundsConfig or its text form -> Graphs."""

from egocnn.data.generated.compounds import generate, read_compounds
from egocnn.data.generated.compounds_config import CompoundsConfig

__all__ = ["CompoundsConfig", "generate", "read_compounds"]
