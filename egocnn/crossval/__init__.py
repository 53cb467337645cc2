"""Cross-validation: graphs and settings -> scores on graphs never seen, with their spread."""

from egocnn.crossval.record import CrossValidation, Fold
from egocnn.crossval.run import cross_validate

__all__ = ["CrossValidation", "Fold", "cross_validate"]
