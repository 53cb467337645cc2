"""How well importances find known structures: Truth + importances -> TruthScores, beside what needs no model."""

from lab.truths.controls import (
    Averaged,
    average,
    degree_importances,
    label_importances,
    random_importances,
    random_scores,
)
from lab.truths.importance import HasImportance, Importance, edges_from_nodes, nodes_from_edges
from lab.truths.isomers import mirror_correlation, unmatched_above_matched
from lab.truths.known import Truth, has_marked_edge, read_alternatives, read_edge_marks
from lab.truths.scores import (
    Outcomes,
    characterisation,
    edge_auc,
    fidelity_minus,
    fidelity_plus,
    jaccard_at_size,
    most_important,
    node_auc,
    pooled_auc,
    precision_at_size,
    roc_auc,
)
from lab.truths.summary import TruthScores, score_structures

__all__ = [
    "Averaged",
    "HasImportance",
    "Importance",
    "Outcomes",
    "TruthScores",
    "Truth",
    "average",
    "characterisation",
    "degree_importances",
    "edge_auc",
    "edges_from_nodes",
    "fidelity_minus",
    "fidelity_plus",
    "has_marked_edge",
    "jaccard_at_size",
    "label_importances",
    "mirror_correlation",
    "most_important",
    "node_auc",
    "nodes_from_edges",
    "pooled_auc",
    "precision_at_size",
    "random_importances",
    "random_scores",
    "read_alternatives",
    "read_edge_marks",
    "roc_auc",
    "score_structures",
    "unmatched_above_matched",
]
