"""A TU data set by scikit-learn: a pipeline over graphs, cross-validated and tuned.

python examples/cross_validation.py              MUTAG, which may be downloaded
python examples/cross_validation.py PROTEINS 30  another set, and more epochs
"""

from __future__ import annotations

import sys

from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import egocnn


def without_edge_labels(graphs: egocnn.Graphs) -> egocnn.Graphs:
    """Any function from graphs to graphs can be a step: how much do bonds matter?"""
    return graphs.replace(edge_label=None, edge_label_names=())


def main(name: str = "MUTAG", epochs: str = "10") -> None:
    graphs = egocnn.read(name)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    settings = {"width": 16, "depth": 2, "learning_rate": 1e-2}
    model = egocnn.EgoCNNClassifier(epochs=int(epochs)).set_params(**settings)
    step = FunctionTransformer(without_edge_labels)
    plain = Pipeline([("graphs", step), ("model", model)])
    for what, each in (("all labels", model), ("node labels alone", plain)):
        scores = cross_val_score(each, graphs, graphs.target, cv=folds)
        print(f"{name}, {what}: accuracy {scores.mean():.3f} ± {scores.std():.3f}")
    search = GridSearchCV(plain, {"model__readout": ["max", "mean+max"]}, cv=2)
    search.fit(graphs, graphs.target)
    best = search.best_params_["model__readout"]
    print(f"best of the readouts: {best} ({search.best_score_:.3f})")


if __name__ == "__main__":
    main(*sys.argv[1:])
