"""A trained model: Graphs -> probabilities or values, and the run folder it is saved in.

A run folder holds plain data only: ``config.json`` (settings, names, and checksums of itself and of the model),
``model.safetensors`` (weights, colour counts, scales), ``history.csv`` and ``metrics.json``. Loading it executes
nothing from it, and refuses what is not, bit for bit, what was written.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn

from egocnn.config import ModelConfig, ReadConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.sources.text import one_line, short
from egocnn.data.store.portions import cut
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.blocks import HUGE, batch_in_blocks
from egocnn.encode.degrees import NAMES, PROFILE
from egocnn.encode.encoder import Encoder
from egocnn.errors import DataError, EgoCNNError, RunError
from egocnn.files import digest_of_file, digest_of_plain, replacing, to_json
from egocnn.nn.device import choose_device
from egocnn.nn.model import EgoCNN, Output
from egocnn.nn.predict import predict

FORMAT = 2
"""Raised whenever an older egocnn could no longer read the folder."""

MODEL = "model.safetensors"
DIGESTS = "digests"
"""The field of config.json with the checksums; folders of older versions do not have it."""

UNREADABLE = (SafetensorError, LookupError, ArithmeticError, TypeError, ValueError, RuntimeError, AttributeError)
"""What reading a damaged run folder may raise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """A network with everything that must go before and after it."""

    config: ModelConfig
    encoder: Encoder
    network: EgoCNN
    temperature: float = 1.0
    """What logits are divided by: fitted on the validation part, so that probabilities match frequencies"""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Where it comes from, for the reader of the run folder: data, settings of the training, versions"""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Empty where the model predicts a value."""
        return self.encoder.class_names

    @staticmethod
    def build(
        config: ModelConfig, encoder: Encoder, *, embed: nn.Module | None = None, embed_width: int | None = None
    ) -> Model:
        """An untrained network that fits the encoded graphs; the caller seeds torch, and ``embed`` is copied."""
        network = EgoCNN(
            config,
            shape=encoder.shape(config),
            attributes=len(encoder.attr_mean),
            outputs=len(encoder.class_names) or 1,
            embed=copy.deepcopy(embed),
            embed_width=embed_width,
        )
        return Model(config=config, encoder=encoder, network=network)

    def encode(self, graphs: Graphs) -> EncodedGraphs:
        """What the network reads of the graphs."""
        return self.encoder.apply(graphs, self.config)

    def outputs(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float32]:
        """(G, C) logits, or (G, 1) standardised values"""
        found = np.zeros((len(graphs), self.network.out.out_features), np.float32)
        place = choose_device(device)
        network = self.network.to(place)
        is_huge = np.full(len(graphs), not network.custom_embedding) & (graphs.node_counts >= HUGE)
        usual = graphs if not is_huge.any() else graphs[~is_huge]
        if len(usual):
            found[~is_huge] = predict(network, self.encode(usual).to(place)).float().cpu().numpy()
        for g in np.flatnonzero(is_huge).tolist():
            found[g] = self.outputs_in_blocks(cut(graphs, g, g + 1), place)
        check_finite(found, graphs.names)
        return found

    @torch.no_grad()
    def outputs_in_blocks(self, graph: Graphs, device: torch.device) -> NDArray[np.float32]:
        """(1, C) of a graph too large for a batch"""
        output: Output = self.network.eval()(batch_in_blocks(self.encoder, self.config, graph, device))
        return output.output.float().cpu().numpy()

    def probabilities(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float64]:
        """(G, C), calibrated, each row summing to 1"""
        if not self.class_names:
            raise DataError("this model predicts a value, not a class; it has no probabilities")
        return self.predictions(graphs, device=device)

    def values(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float64]:
        """(G) predictions of a regressor, in the unit of its target"""
        if self.class_names:
            raise DataError("this model predicts a class, not a value")
        return self.predictions(graphs, device=device)

    def predictions(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float64]:
        """(G, C) probabilities of a classifier, or (G) values of a regressor"""
        return self.interpret(torch.from_numpy(self.outputs(graphs, device=device)))

    def interpret(self, outputs: Tensor) -> NDArray[np.float64]:
        """The same from the outputs (G, C) of the network."""
        if self.class_names:
            return torch.softmax(outputs.double() / self.temperature, dim=1).numpy()
        return self.encoder.to_value(outputs[:, 0].double()).numpy()

    # ── on disk ───────────────────────────────────────────────────────────────────────────────────

    def save(self, folder: str | Path) -> None:
        """Write ``config.json`` and ``model.safetensors`` of a run folder."""
        folder = Path(folder)
        arrays = {f"network.{name}": value.cpu().numpy() for name, value in self.network.state_dict().items()}
        arrays |= {f"encoder.{name}": value for name, value in self.encoder.arrays().items()}
        with replacing(folder / "config.json") as config, replacing(folder / MODEL) as model:
            save_file({name: np.array(value, order="C") for name, value in arrays.items()}, model)
            # all but the renaming comes first: it is hardly possible to be killed after one and before the other
            config.write_text(to_json(sealed(json.loads(to_json(self.to_plain())), digest_of_file(model))), "utf-8")

    def to_plain(self) -> dict[str, Any]:
        """The content of ``config.json`` but for the checksums."""
        return {
            "format": FORMAT,
            "model": asdict(self.config),
            "encoder": self.encoder.texts(),
            "temperature": self.temperature,
            "custom_embedding": self.network.custom_embedding,
            **self.about,
        }

    @staticmethod
    def load(folder: str | Path, *, embed: nn.Module | None = None, embed_width: int | None = None) -> Model:
        """Read a run folder; a model with an embedding module of the user's own needs that module again."""
        folder = Path(folder)
        plain = read_config(folder)
        if plain.get("custom_embedding") and embed is None:
            raise RunError(f"{folder}: this model reads nodes through a module of its author; pass it as embed=")
        if embed is not None and not plain.get("custom_embedding"):
            raise RunError(f"{folder}: this model has a node embedding of its own; leave embed= out")
        try:
            check_model(folder, plain)
            arrays = load_file(folder / MODEL)
            return _restore(plain, arrays, embed=embed, embed_width=embed_width)
        except FileNotFoundError:
            raise RunError(
                f"{folder}: no model.safetensors; the run has not finished (egocnn train --resume)"
            ) from None
        except EgoCNNError as error:
            raise RunError(f"{folder}: {one_line(str(error))}") from None
        except OSError as error:
            raise RunError(f"{folder}/{MODEL}: {error.strerror or error}") from None
        except UNREADABLE as error:
            reason = one_line(str(error), 200) or type(error).__name__
            raise RunError(f"{folder}: config.json and model.safetensors do not make a model ({reason})") from None


def check_finite(outputs: NDArray[Any], names: Sequence[str]) -> None:
    """Refuse outputs (G, C) that are not numbers any more, by the name of the first such graph."""
    wrong = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
    if len(wrong):
        name = names[int(wrong[0])]
        raise DataError(
            f"graph {name!r}: what the network computes from it is not a finite number; its weights or attributes are "
            "too large"
        )


def read_config(folder: Path) -> dict[str, Any]:
    """``config.json`` of a run folder as plain data, its format checked."""
    try:
        plain = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{folder}: not a run folder; it has no config.json") from None
    except OSError as error:
        raise RunError(f"{folder}/config.json: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{folder}/config.json: {error}") from None
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        found = plain.get("format") if isinstance(plain, dict) else None
        raise RunError(
            f"{folder}/config.json: format {short(found)}; this egocnn reads format {FORMAT}: train it again"
        )
    if DIGESTS in plain and not _is_sealed(plain):
        raise RunError(f"{folder}/config.json: damaged, its checksum differs")
    return plain


def sealed(plain: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The content of config.json with the checksums of itself and of the model file."""
    bare = {name: value for name, value in plain.items() if name != DIGESTS}
    return {**bare, DIGESTS: {"config.json": digest_of_plain(bare), MODEL: model}}


def _is_sealed(plain: Mapping[str, Any]) -> bool:
    digests = plain[DIGESTS]
    try:
        return isinstance(digests, dict) and sealed(plain, digests[MODEL]) == plain
    except (LookupError, ValueError, RecursionError):  # half a surrogate pair cannot be encoded
        return False


def check_model(folder: Path, plain: Mapping[str, Any]) -> None:
    """Refuse a model file that is not, bit for bit, the one that config.json was written with."""
    if DIGESTS in plain and digest_of_file(folder / MODEL) != plain[DIGESTS][MODEL]:
        raise RunError(f"{MODEL} is damaged, or not that of config.json: its checksum differs")


def _restore(
    plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, embed: nn.Module | None, embed_width: int | None
) -> Model:
    _check_numbers(plain, arrays)
    encoder = Encoder.restore(_under(arrays, "encoder."), plain["encoder"])
    config = model_config(plain["model"])
    _check_encoder(encoder, config)
    state = {name: torch.from_numpy(value) for name, value in _under(arrays, "network.").items()}
    with torch.device("meta"):  # shapes without numbers: a width that the weights do not have must cost no memory
        planned = Model.build(config, encoder, embed=embed, embed_width=embed_width)
    for name, value in planned.network.state_dict().items():
        if value.ndim and state[name].shape != value.shape:
            raise RunError(f"{name} has shape {tuple(state[name].shape)}, the settings ask for {tuple(value.shape)}")
    model = Model.build(config, encoder, embed=embed, embed_width=embed_width)
    model.network.load_state_dict(state)
    model.network.eval()
    return replace(model, temperature=float(plain["temperature"]), about=_about(plain))


def _check_numbers(plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse numbers that no training writes, before anything is computed from them."""
    texts = plain["encoder"]
    numbers = {"temperature": plain["temperature"], **{name: texts[name] for name in ("target_mean", "target_scale")}}
    for name, number in numbers.items():
        least = -math.inf if name == "target_mean" else 0
        if not isinstance(number, (int, float)) or not math.isfinite(number) or number <= least:
            raise RunError(f"{name} must be a number in its range, got {number!r}")
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise RunError(f"{name} has numbers that are not finite")
    if plain["model"]["depth"] > len(arrays):
        raise RunError(f"a depth of {plain['model']['depth']}, and weights for fewer layers")
    ReadConfig(**plain.get("read", {}))
    TrainConfig(**plain.get("train", {}))


def _check_encoder(encoder: Encoder, config: ModelConfig) -> None:
    for names in (encoder.node_label_names, encoder.edge_label_names, encoder.class_names):
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise RunError("the names of labels and classes must be lists of texts")
    if not isinstance(encoder.by_degree, bool):
        raise RunError(f"by_degree must be true or false, got {encoder.by_degree!r}")
    if encoder.by_degree and len(encoder.attr_mean) < PROFILE:
        raise RunError("nodes are described by degrees, and there are no scales of what these say")
    if encoder.by_degree and not NAMES.issuperset(encoder.node_label_names):
        raise RunError("its labels are other classes of degrees than this version of egocnn has: train it again")
    mean, scale, ranking = encoder.attr_mean, encoder.attr_scale, encoder.ranking
    pairs = [(mean, scale), *zip(ranking.colours, ranking.counts, strict=True)]
    if any(one.ndim != 1 or one.shape != other.shape for one, other in pairs) or not (scale > 0).all():
        raise RunError("the scales of attributes or the counts of colours do not fit together")
    if len(ranking.colours) != config.wl_rounds:
        raise RunError(f"{config.wl_rounds} rounds of colours, and counts for {len(ranking.colours)}")


def model_config(plain: Mapping[str, Any]) -> ModelConfig:
    """Settings from JSON, where tuples have become lists."""
    settings: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in plain.items()}
    return ModelConfig(**settings)


def _under(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def _about(plain: Mapping[str, Any]) -> dict[str, Any]:
    own = ("format", "model", "encoder", "temperature", "custom_embedding", DIGESTS)
    return {name: value for name, value in plain.items() if name not in own}
