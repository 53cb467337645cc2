"""What can go wrong, in a few kinds: each is reported to the user as one clear line."""

from typing import Any


class EgoCNNError(Exception):
    """Anything egocnn refuses on purpose; the command line prints its message and exits with 2."""

    def __reduce__(self) -> tuple[Any, ...]:
        """On its way between processes made anew from its message: some kinds build that from other arguments."""
        return Exception.__new__, (type(self), *self.args), self.__dict__


class DataError(EgoCNNError):
    """Input that breaks a rule; the message names the file, the line, the value and the rule."""


def rule(holds: object, message: str, error: type[EgoCNNError] = DataError) -> None:
    """Refuse what breaks a rule: data, or with another kind of error a setting, say."""
    if not holds:
        raise error(message)


class MissingColumnError(DataError):
    """A column or field that was asked for by name is not there."""


class DuplicateEdgeError(DataError):
    """The same edge given twice with different labels or weights. ``rows`` holds the positions of both in the list of
    edges, so that a reader can name the lines."""

    def __init__(self, message: str, rows: tuple[int, int]) -> None:
        super().__init__(message)
        self.rows = rows


class DivergedError(DataError):
    """A training in which no epoch gave a finite loss."""


class ConfigError(EgoCNNError):
    """A setting outside its range, or two settings that exclude each other."""


class RunError(EgoCNNError):
    """A run folder that is missing, damaged or of another version."""


class MissingExtraError(EgoCNNError):
    """An optional library is not installed; the message says what to type."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f'{library} is not installed; type: pip install "egocnn[{extra}]"')
