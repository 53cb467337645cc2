"""Molecules whose critical structure is known, generated from a seed: CompoundsConfig or its text form -> Graphs."""

from egocnn.data.generated.compounds import CompoundsConfig, generate, read_compounds

__all__ = ["CompoundsConfig", "generate", "read_compounds"]
