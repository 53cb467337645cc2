"""A trained model, R networks of one shape: Graphs -> probabilities or values, and the run folder it is saved in.

The mean of the networks' outputs predicts; how far they spread says how far to trust it.

A run folder holds plain data only: ``config.json`` (settings, names, and checksums of itself and of the model),
``model.safetensors`` (weights, colour counts, scales), ``history.csv`` and ``metrics.json``. Loading it executes
nothing from it, and refuses what is not, bit for bit, what was written."""

import copy
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save
from torch import Tensor, nn

from egocnn.config import ModelConfig, ReadConfig, TrainConfig
from egocnn.data.arrays import Bools
from egocnn.data.graphs import Graphs
from egocnn.data.sources.text import one_line, short
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.blocks import HUGE, batch_in_blocks
from egocnn.encode.colours import COUNTED_ROUNDS
from egocnn.encode.degrees import NAMES, PROFILE
from egocnn.encode.encoder import Encoder
from egocnn.errors import ConfigError, DataError, EgoCNNError, RunError, rule
from egocnn.files import check_is_no_file, digest_of_file, digest_of_plain, regular, replacing, to_json
from egocnn.nn.device import choose_device
from egocnn.nn.model import EgoCNN, Output, alone
from egocnn.nn.predict import predict_each

FORMAT = 5
"""Raised whenever an older egocnn could no longer read the folder, or this one could no longer read older folders."""

MODEL = "model.safetensors"
DIGESTS = "digests"  # The field of config.json with the checksums; folders of older versions do not have it.
MAY_BE_ZERO = ("noise", "spread_scale")
FITTED = ("temperature", *MAY_BE_ZERO)  # Numbers in config.json that were fitted on the validation part.

UNREADABLE = (SafetensorError, LookupError, ArithmeticError, TypeError, ValueError, RuntimeError, AttributeError)
"""What reading a damaged run folder may raise."""

T = TypeVar("T")
Answer: TypeAlias = "tuple[str, Model, NDArray[np.float64], NDArray[np.float64] | None]"
"""Of each of several targets, or of the one, called '': its name, model, predictions and spread"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """R networks with everything that must go before and after them."""

    config: ModelConfig
    encoder: Encoder
    networks: tuple[EgoCNN, ...]  # of the same shape, each trained from a seed of its own
    temperature: float = 1.0  # what logits are divided by: fitted on the validation part to make probabilities true
    noise: float = 0.0  # standard deviation of the error that a regressor's networks share, standardised; fitted too
    spread_scale: float = 1.0  # what that of their values is multiplied by to be that of their error beside the noise
    about: Mapping[str, Any] = field(default_factory=dict)  # for the reader of the run folder: data, settings, versions

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of several targets; empty where there is one."""
        return tuple(each.name for each in self.encoder.targets_of)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Empty where the model predicts a value; a model of several targets has them for each of these alone."""
        if self.targets:
            takes_one = "what is asked of it takes a model of one target: in Python model.of_target(NAME)"
            raise ConfigError(f"this model predicts several targets ({', '.join(self.targets)}); {takes_one}")
        return self.encoder.class_names

    @property
    def predicts_classes(self) -> bool:
        """Whether it predicts a class, of one target at least."""
        return any(each.class_names for each in self.encoder.targets_of) or bool(self.encoder.class_names)

    def target_name(self, asked: str | None = None) -> str:
        """What the data call what is predicted, of several the one asked for or the first; '' where it has no name."""
        return asked or (*self.targets, self.about.get("read", {}).get("target") or "")[0]

    def of_target(self, name: str | None = None) -> "Model":
        """The model that predicts this one of several targets alone, by default the first; see :attr:`targets`."""
        known = self.targets or (self.target_name() or "one without a name",)
        name = known[0] if name is None else name
        rule(name in known, f"the model knows no target {name!r}; it knows {', '.join(known)}", ConfigError)
        if not self.targets:
            return self
        number = self.targets.index(name)
        one, networks = self.encoder.targets_of[number], tuple(alone(each, number) for each in self.networks)
        fitted = {key: getattr(one, key) for key in FITTED}
        return replace(self, encoder=self.encoder.of_target(one), networks=networks, **fitted)

    def each_target(self, outputs: NDArray[np.float32]) -> "Iterator[tuple[str, Model, NDArray[np.float32]]]":
        """Outputs (R, G, C) -> of each of several targets, or of the one, called '': name, model and outputs"""
        ends = np.cumsum(self.networks[0].widths)[:-1]
        for name, own in zip(self.targets or ("",), np.split(outputs, ends, axis=2), strict=True):
            yield name, self.of_target(name) if name else self, own

    @staticmethod
    def build(
        config: ModelConfig, encoder: Encoder, *, embed: nn.Module | None = None, embed_width: int | None = None
    ) -> "Model":
        """One untrained network that fits the encoded graphs; the caller seeds torch, and ``embed`` is copied."""
        outputs = [len(each.class_names) or 1 for each in encoder.targets_of] or len(encoder.class_names) or 1
        sizes: dict[str, Any] = {"attributes": len(encoder.attr_mean), "outputs": outputs}
        shape, embed = encoder.shape(config), copy.deepcopy(embed)
        network = EgoCNN(config, shape=shape, **sizes, embed=embed, embed_width=embed_width)
        return Model(config=config, encoder=encoder, networks=(network,))

    @property
    def n_outputs(self) -> int:
        """C: classes, or 1 for a value; of several targets all together."""
        return self.networks[0].out.out_features

    @property
    def n_parameters(self) -> int:
        """Of all networks together."""
        return sum(network.n_parameters for network in self.networks)

    @property
    def custom_embedding(self) -> bool:
        """Whether a module of the user's own takes the place of the node embedding."""
        return self.networks[0].custom_embedding

    def encode(self, graphs: Graphs) -> EncodedGraphs:
        """What the networks read of the graphs."""
        return self.encoder.apply(graphs, self.config)

    def is_huge(self, graphs: Graphs) -> Bools:
        """(G) the graphs that are read in blocks of nodes"""
        return (graphs.node_counts >= HUGE) & (not self.custom_embedding)

    def outputs(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float32]:
        """(G, C) logits, or (G, 1) standardised values; the mean over the networks"""
        return mean_output(self.outputs_of_each(graphs, device=device))

    def outputs_of_each(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float32]:
        """(R, G, C) the same of every network; graphs are encoded, and batches cut, once for all of them"""
        place = choose_device(device)
        networks = [network.to(place) for network in self.networks]
        found = np.zeros((len(networks), len(graphs), self.n_outputs), np.float32)
        is_huge = self.is_huge(graphs)
        usual = graphs if not is_huge.any() else graphs[~is_huge]
        if len(usual):
            found[:, ~is_huge] = predict_each(networks, self.encode(usual).to(place)).float().cpu().numpy()
        for g in np.flatnonzero(is_huge).tolist():
            found[:, g] = self.outputs_in_blocks(graphs[g : g + 1], place)
        for of_one in found:
            check_finite(of_one, graphs.names)
        return found

    @torch.no_grad()
    def outputs_in_blocks(self, graph: Graphs, device: torch.device) -> NDArray[np.float32]:
        """(R, C) of a graph too large for a batch"""
        batch = batch_in_blocks(self.encoder, self.config, graph, device)
        outputs: list[Output] = [network.eval()(batch) for network in self.networks]
        return torch.cat([each.output for each in outputs]).float().cpu().numpy()

    def probabilities(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float64]:
        """(G, C), calibrated, each row summing to 1"""
        rule(self.class_names, "this model predicts a value, not a class; it has no probabilities")
        return self.predictions(graphs, device=device)

    def values(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float64]:
        """(G) predictions of a regressor, in the unit of its target"""
        rule(not self.class_names, "this model predicts a class, not a value")
        return self.predictions(graphs, device=device)

    def predictions(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float64]:
        """(G, C) probabilities of a classifier, or (G) values of a regressor"""
        return self.interpret(torch.from_numpy(self.outputs(graphs, device=device)))

    def interpret(self, outputs: Tensor) -> NDArray[np.float64]:
        """The same from outputs (G, C)"""
        if self.class_names:
            return torch.softmax(outputs.double() / self.temperature, dim=1).numpy()
        return self.encoder.to_value(outputs[:, 0].double()).numpy()

    def by_target(self, graphs: Graphs, *, device: str = "auto") -> Iterator[Answer]:
        """Of each of several targets, or of the one, called '': name, model, predictions and spread, from one pass."""
        return self.of_outputs(self.outputs_of_each(graphs, device=device))

    def of_outputs(self, outputs: NDArray[np.float32]) -> Iterator[Answer]:
        """The same from the outputs (R, G, C) of every network"""
        for name, one, own in self.each_target(outputs):
            yield name, one, one.interpret(torch.from_numpy(mean_output(own))), one.spread_of(own)

    def spread(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float64] | None:
        """(G) the model's doubt, in probability or in the unit of the target; None for a single network. Of a
        classifier the standard deviation, over the networks, of the calibrated probability of the predicted class. Of a
        regressor the standard deviation of its error as it was on the validation part: of the networks' values, scaled,
        and of the noise that they share, added as variances."""
        return self.spread_of(self.outputs_of_each(graphs, device=device))

    def spread_of(self, outputs: NDArray[np.float32]) -> NDArray[np.float64] | None:
        """The same from the outputs (R, G, C) of every network"""
        if len(outputs) == 1:
            return None
        if not self.class_names:
            deviation = outputs[:, :, 0].std(axis=0, ddof=1, dtype=np.float64)
            return np.asarray(np.hypot(self.noise, self.spread_scale * deviation) * self.encoder.target_scale)
        likeliest = mean_output(outputs).argmax(axis=1)
        each = np.stack([self.interpret(torch.from_numpy(of_one)) for of_one in outputs])
        return np.asarray(each[:, np.arange(len(likeliest)), likeliest].std(axis=0, ddof=1))

    def save(self, folder: str | Path) -> None:
        """Write ``config.json`` and ``model.safetensors`` of a run folder."""
        check_is_no_file(folder := Path(folder), RunError)
        several = ((f"networks.{r}", network.state_dict()) for r, network in enumerate(self.networks))
        arrays = {f"{own}.{name}": value.cpu().numpy() for own, state in several for name, value in state.items()}
        arrays |= {f"encoder.{name}": value for name, value in self.encoder.arrays().items()}
        with replacing(folder / "config.json") as config, replacing(folder / MODEL) as model:
            model.write_bytes(save({name: np.array(value, order="C") for name, value in arrays.items()}))
            # all but the renaming comes first: it is hardly possible to be killed after one and before the other
            config.write_text(to_json(sealed(json.loads(to_json(self.to_plain())), digest_of_file(model))), "utf-8")

    def to_plain(self) -> dict[str, Any]:
        """The content of ``config.json`` but for the checksums."""
        own = {"format": FORMAT, "model": asdict(self.config), "encoder": self.encoder.texts()}
        own |= {"networks": len(self.networks), **{name: getattr(self, name) for name in FITTED}}
        return {**own, "custom_embedding": self.custom_embedding, **self.about}

    @staticmethod
    def load(folder: str | Path, *, embed: nn.Module | None = None, embed_width: int | None = None) -> "Model":
        """Read a run folder; a model with an embedding module of the user's own needs that module again."""
        folder = Path(folder)
        plain = read_config(folder)
        if plain.get("custom_embedding") and embed is None:
            raise RunError(f"{folder}: this model reads nodes through a module of its author; pass it as embed=")
        if embed is not None and not plain.get("custom_embedding"):
            raise RunError(f"{folder}: this model has a node embedding of its own; leave embed= out")
        try:
            check_model(folder, plain)
            return _restore(plain, load_file(regular(folder / MODEL)), embed, embed_width)
        except FileNotFoundError:
            raise RunError(f"{folder}: no {MODEL}; the run has not finished (egocnn train --resume)") from None
        except EgoCNNError as error:
            raise RunError(f"{folder}: {one_line(str(error))}") from None
        except OSError as error:
            raise RunError(f"{folder}/{MODEL}: {error.strerror or error}") from None
        except UNREADABLE as error:
            reason = one_line(str(error), 200) or type(error).__name__
            raise RunError(f"{folder}: config.json and {MODEL} do not make a model ({reason})") from None


def model_of(given: Any) -> "Model":
    """A model, or that of a fitted estimator"""
    model = getattr(given, "model_", given)
    if not isinstance(model, Model):
        raise ConfigError(f"a fitted estimator or a predictor is needed, not {type(given).__name__}")
    return model


def mean_output(outputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Outputs (R, G, C) of every network -> (G, C) of the model"""
    return np.asarray(outputs.mean(axis=0))


def check_finite(outputs: NDArray[Any], names: Sequence[str] | None = None) -> None:
    """Refuse outputs (G, C) that are not numbers any more, by the name, or else the number, of the first such graph."""
    wrong = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
    if len(wrong):
        what = "what the network computes from it is not a finite number; its weights or attributes are too large"
        raise DataError(f"graph {int(wrong[0]) if names is None else repr(names[int(wrong[0])])}: {what}")


def read_config(folder: Path) -> dict[str, Any]:
    """``config.json`` of a run folder as plain data, its format checked."""
    try:
        plain = json.loads(regular(folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{folder}: not a run folder; it has no config.json") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{folder}/config.json: {getattr(error, 'strerror', None) or error}") from None
    found = plain.get("format") if isinstance(plain, dict) else None
    wanted = f"this egocnn reads format {FORMAT}: train it again"
    rule(found == FORMAT, f"{folder}/config.json: format {short(found)}; {wanted}", RunError)
    try:
        whole = sealed(plain, plain[DIGESTS][MODEL] if DIGESTS in plain else "")  # names must be text in any case
        is_whole = whole == plain or DIGESTS not in plain
    except (LookupError, TypeError, ValueError, RecursionError):  # half a surrogate pair cannot be encoded
        is_whole = False
    rule(is_whole, f"{folder}/config.json: damaged, its checksum differs", RunError)
    return dict(plain)


def sealed(plain: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The content of config.json with the checksums of itself and of the model file."""
    bare = {name: value for name, value in plain.items() if name != DIGESTS}
    return {**bare, DIGESTS: {"config.json": digest_of_plain(bare), MODEL: model}}


def model_digest(folder: Path) -> str:
    """Of a run folder: changes with the weights and with all that goes before and after them."""
    return digest_of_plain({name: digest_of_file(folder / name) for name in ("config.json", MODEL)})


def check_model(folder: Path, plain: Mapping[str, Any]) -> None:
    """Refuse a model file that is not, bit for bit, the one that config.json was written with."""
    if DIGESTS in plain and digest_of_file(folder / MODEL) != plain[DIGESTS][MODEL]:
        raise RunError(f"{MODEL} is damaged, or not that of config.json: its checksum differs")


def _restore(
    plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], embed: nn.Module | None, embed_width: int | None
) -> "Model":
    _check_numbers(plain, arrays)
    encoder = Encoder.restore(under("encoder.", arrays), plain["encoder"])
    config = ModelConfig(**plain["model"])
    _check_encoder(encoder)
    weights, stated = under("networks.", arrays), plain["networks"]
    found = len({name.split(".")[0] for name in weights})
    if not isinstance(stated, int) or stated < 1 or found != stated:
        raise RunError(f"networks is {stated!r}, and there are weights for {found}")
    with torch.device("meta"):  # shapes without numbers: a width that the weights do not have must cost no memory
        planned = Model.build(config, encoder, embed=embed, embed_width=embed_width)
    shapes = {name: value.shape for name, value in planned.networks[0].state_dict().items() if value.ndim}
    networks = []
    for r in range(stated):
        state = {name: torch.from_numpy(value) for name, value in under(f"{r}.", weights).items()}
        for name, shape in shapes.items():
            if state[name].shape != shape:
                raise RunError(f"{name} has shape {tuple(state[name].shape)}, the settings ask for {tuple(shape)}")
        (network,) = Model.build(config, encoder, embed=embed, embed_width=embed_width).networks
        network.load_state_dict(state)
        networks.append(network.eval())
    fitted = {name: float(plain[name]) for name in FITTED}
    own = ("format", "model", "encoder", "networks", *FITTED, "custom_embedding", DIGESTS)
    about = {name: value for name, value in plain.items() if name not in own}
    return Model(config=config, encoder=encoder, networks=tuple(networks), about=about, **fitted)


def _check_numbers(plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse numbers that no training writes, before anything is computed from them."""
    several = [{**plain["encoder"], **plain}, *plain["encoder"].get("targets_of", ())]
    for name, number in ((name, each[name]) for each in several for name in (*FITTED, "target_mean", "target_scale")):
        is_number = isinstance(number, (int, float)) and math.isfinite(number)
        if not (is_number and (name == "target_mean" or number > 0 or (number == 0 and name in MAY_BE_ZERO))):
            raise RunError(f"{name} must be a number in its range, got {number!r}")
    for name, values in arrays.items():
        rule(np.isfinite(values).all(), f"{name} has numbers that are not finite", RunError)
    if plain["model"]["depth"] > len(arrays):
        raise RunError(f"a depth of {plain['model']['depth']}, and weights for fewer layers")
    ReadConfig(**plain.get("read", {}))
    TrainConfig(**plain.get("train", {}))


def _check_encoder(encoder: Encoder) -> None:
    words = (encoder.node_words, encoder.edge_words)
    several = ((each.name, *each.class_names) for each in encoder.targets_of)
    lists = (encoder.node_label_names, encoder.edge_label_names, encoder.class_names, *words, *several)
    if not all(isinstance(names, tuple) and all(isinstance(name, str) for name in names) for names in lists):
        raise RunError("the names of labels and classes must be lists of texts")
    rule(isinstance(encoder.by_degree, bool), f"by_degree must be true or false, got {encoder.by_degree!r}", RunError)
    if encoder.by_degree and len(encoder.attr_mean) < PROFILE:
        raise RunError("nodes are described by degrees, and there are no scales of what these say")
    if encoder.by_degree and not NAMES.issuperset(encoder.node_label_names):
        raise RunError("its labels are other classes of degrees than this version of egocnn has: train it again")
    mean, scale, ranking = encoder.attr_mean, encoder.attr_scale, encoder.ranking
    pairs = [(mean, scale), *zip(ranking.colours, ranking.counts, strict=True)]
    if any(one.ndim != 1 or one.shape != other.shape for one, other in pairs) or not (scale > 0).all():
        raise RunError("the scales of attributes or the counts of colours do not fit together")
    if len(ranking.colours) != COUNTED_ROUNDS:
        raise RunError(f"{COUNTED_ROUNDS} rounds of colours, and counts for {len(ranking.colours)}")


def under(prefix: str, values: Mapping[str, T]) -> dict[str, T]:
    """'network.convs.0.weight' under 'network.' -> 'convs.0.weight'"""
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
