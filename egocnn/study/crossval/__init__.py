"""Cross-validation: graphs and settings -> scores on graphs never seen, with their spread."""

from egocnn.study.crossval.folds import Protocol, choose_protocol
from egocnn.study.crossval.record import CrossValidation, compare, read_record, sentence
from egocnn.study.crossval.training import EGO_CNN, OtherModel, cross_validate

__all__ = ["EGO_CNN", "CrossValidation", "OtherModel", "Protocol"]
__all__ += ["choose_protocol", "compare", "cross_validate", "read_record", "sentence"]
