"""Molecules whose critical structure is known, generated from a seed: CompoundsConfig or its text form -> Graphs."""

from egocnn.compounds.collection import generate, read_compounds
from egocnn.compounds.config import CompoundsConfig
from egocnn.compounds.symmetry import mirror

__all__ = ["CompoundsConfig", "generate", "mirror", "read_compounds"]
