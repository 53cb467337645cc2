"""Cross-validation: graphs and settings -> scores on graphs never seen, with their spread."""

from egocnn.study.crossval.classifier import EGO_CNN, Builder, Classifier
from egocnn.study.crossval.compare import compare, sentence
from egocnn.study.crossval.protocol import Protocol, choose_protocol
from egocnn.study.crossval.record import CrossValidation, Fold, Run, read_record
from egocnn.study.crossval.run import cross_validate

__all__ = [
    "EGO_CNN",
    "Builder",
    "Classifier",
    "CrossValidation",
    "Fold",
    "Protocol",
    "Run",
    "choose_protocol",
    "compare",
    "cross_validate",
    "read_record",
    "sentence",
]
