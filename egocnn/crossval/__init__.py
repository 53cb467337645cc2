"""Cross-validation: graphs and settings -> scores on graphs never seen, with their spread."""

from egocnn.crossval.compare import compare, sentence
from egocnn.crossval.protocol import Protocol, choose_protocol
from egocnn.crossval.record import CrossValidation, Fold, Run, read_record
from egocnn.crossval.request import from_command
from egocnn.crossval.rivals import EGO_CNN, find_rival, rivals
from egocnn.crossval.run import cross_validate

__all__ = [
    "EGO_CNN",
    "CrossValidation",
    "Fold",
    "Protocol",
    "Run",
    "choose_protocol",
    "compare",
    "cross_validate",
    "find_rival",
    "from_command",
    "read_record",
    "rivals",
    "sentence",
]
