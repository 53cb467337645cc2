"""Alkanes and alcohols whose critical structure is known, generated from a seed: AlcoholsConfig or text -> Graphs."""

from egocnn.data.generated.alcohols import AlcoholsConfig, generate, read_compounds

__all__ = ["AlcoholsConfig", "generate", "read_compounds"]
