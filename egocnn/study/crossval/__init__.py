"""Cross-validation: graphs and settings -> scores on graphs never seen, with their spread."""

from egocnn.study.crossval.folds import Protocol, choose_protocol
from egocnn.study.crossval.other_models import EGO_CNN, Builder, Classifier
from egocnn.study.crossval.record import CrossValidation, compare, read_record, sentence
from egocnn.study.crossval.training import cross_validate

__all__ = ["EGO_CNN", "Builder", "Classifier", "CrossValidation", "Protocol"]
__all__ += ["choose_protocol", "compare", "cross_validate", "read_record", "sentence"]
