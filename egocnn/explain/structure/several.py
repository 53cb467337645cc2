"""The critical structures of several graphs -> a table, and a page for a notebook."""

from typing import Any

from egocnn.explain.structure import CriticalStructure

PICTURES = 12  # Structures that a notebook shows.


class Structures(list[CriticalStructure]):
    """The critical structures of several graphs, in order: a list that a notebook shows as pictures."""

    def to_frame(self) -> Any:
        """The structures as a table.

        Returns:
            A pandas ``DataFrame`` with a row for each graph; ``critical_atoms`` counts them in the order of the input.
        """
        import pandas

        return pandas.DataFrame([_row(structure) for structure in self])

    def _repr_html_(self) -> str:
        more = f"<p>and {len(self) - PICTURES} more</p>" if len(self) > PICTURES else ""
        return "".join(structure._repr_html_() for structure in self[:PICTURES]) + more


def _row(one: CriticalStructure) -> dict[str, Any]:
    row = {"name": one.name, "smiles": one.graph.smiles, "predicted": one.predicted, "probability": one.probability}
    row |= {"true": one.graph.target, "explained": one.explained, "base": one.base, "output": one.output}
    row |= {"size": len(one.critical_nodes), "critical_atoms": one.critical_nodes.tolist()}
    shares = {name: getattr(one.fidelity, name, None) for name in ("evidence_kept", "evidence_lost")}
    return {**row, **shares, "spread": one.spread}
