"""Options of the command line -> what is to be cross-validated, how, and against what."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass

from egocnn.baselines.system import Rival
from egocnn.config import ModelConfig, TrainConfig
from egocnn.crossval.protocol import Protocol, choose_protocol
from egocnn.crossval.record import CrossValidation, read_record
from egocnn.crossval.rivals import EGO_CNN, find_rival
from egocnn.errors import ConfigError, DataError
from egocnn.options import from_options

HEEDED = ("validation", "seed", "device")
"""Settings of the training that hold for rivals too."""


@dataclass(frozen=True, slots=True)
class Request:
    model: ModelConfig | Rival
    train: TrainConfig
    protocol: Protocol
    against: CrossValidation | None

    @property
    def epochs(self) -> int:
        """of all trainings together, at most"""
        return self.protocol.trainings * self.train.epochs


def from_command(options: argparse.Namespace) -> Request:
    """Check all that can be checked before graphs are read."""
    model: ModelConfig | Rival = from_options(options, ModelConfig)
    if options.model != EGO_CNN:
        model = find_rival(options.model)
        _check_unsaid(options, model)
    protocol = choose_protocol(
        options.protocol,
        data=options.data,
        folds=options.folds,
        restarts=options.restarts,
        runs=options.runs,
        combine=options.combine,
        splits=options.splits,
    )
    against = None if options.against is None else read_record(options.against)
    if options.against is not None and against is None:
        raise DataError(f"{options.against}: no such file")
    return Request(model, from_options(options, TrainConfig), protocol, against)


def _check_unsaid(options: argparse.Namespace, rival: Rival) -> None:
    """Refuse settings of the Ego-CNN for a model that would not heed them."""
    if options.preset is not None:
        raise ConfigError(f"--preset names settings of the Ego-CNN; {rival.name} has its own")
    for config in (ModelConfig, TrainConfig):
        for name, usual in asdict(config()).items():
            if name not in HEEDED and getattr(options, name) != usual:
                raise ConfigError(f"--{name.replace('_', '-')} is a setting of the Ego-CNN; {rival.name} has its own")
