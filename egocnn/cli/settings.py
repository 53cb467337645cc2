"""Settings from a preset, a run or a TOML file -> values for options, and the settings of a command -> such a file.
What is typed goes before ``--config``, that before ``--like``, that before ``--preset``, and that before the defaults.
A file has a section for each record of settings: ``[read]``, ``[model]``, ``[train]`` and ``[explain]``."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

from egocnn.cli.options import Options, from_options
from egocnn.config import PRESETS, ExplainConfig, ModelConfig, ReadConfig, TrainConfig, check_fields
from egocnn.errors import ConfigError
from egocnn.files import regular

FILE = "settings.toml"  # What the settings are called in a run folder.

Sections = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingGraphs:
    """Which graphs a training takes."""

    test: float = 0.2  #: Share held out for the test, where the data has no split of its own; 0 for none.
    limit: int | None = None  #: The first of them alone.

    def __post_init__(self) -> None:
        check_fields(self)


SECTIONS: dict[str, tuple[type[Any], ...]] = {
    "read": (ReadConfig,),
    "model": (ModelConfig,),
    "train": (TrainConfig, TrainingGraphs),
    "explain": (ExplainConfig,),
}
"""The sections of a settings file, and the records whose fields stand there."""
RECORDS = {
    section: {field.name: config for config in configs for field in fields(config)}
    for section, configs in SECTIONS.items()
}
"""For each section, the record that each field belongs to."""


def loaded_settings(options: Options) -> dict[str, Any]:
    """The values from preset, run and file for the options of a command, by the names of the options."""
    loaded: dict[str, Any] = {}
    if (preset := getattr(options, "preset", None)) is not None:
        values = PRESETS[preset].options()
        loaded |= {name: value for name, value in values.items() if name not in ("seed", "device")}
    run, file = getattr(options, "like", None), getattr(options, "config", None)
    if run is not None and not (run / FILE).is_file():
        raise ConfigError(f"{run}: holds no {FILE}; --like takes a run folder that egocnn train wrote")
    for path in (path for path in (run and run / FILE, file) if path is not None):
        settings = read_settings(path)
        chosen = {name: settings.get(name, {}) for name in options.sections}
        if "train" not in chosen:  # a model reads as it was trained unless the file says something unusual
            usual = asdict(ReadConfig())
            chosen["read"] = {name: value for name, value in chosen["read"].items() if value != usual[name]}
        loaded |= {name: value for each in chosen.values() for name, value in each.items() if hasattr(options, name)}
    return loaded


def used_settings(options: Options) -> Sections:
    """The settings of a training, whatever they came from, as :func:`read_settings` reads them again."""
    return {
        section: {
            name: value for config in SECTIONS[section] for name, value in asdict(from_options(options, config)).items()
        }
        for section in ("read", "model", "train")
    }


def read_settings(path: Path) -> Sections:
    """The settings of a TOML file, each as its record holds it; an error names the file and the setting."""
    try:
        plain = tomllib.loads(regular(path).read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: is not TOML ({error})") from None
    for name, section in plain.items():
        if name not in SECTIONS:
            there = ", ".join(f"[{each}]" for each in SECTIONS)
            home, unknown = _home(name), f"no section is called {name!r}; there are {there}"
            known = f"{name} stands outside of a section; it belongs to [{home}]"
            raise ConfigError(f"{path}: {known if home else unknown}")
        if not isinstance(section, dict):
            raise ConfigError(f"{path}: {name} must be a section, [{name}], got {section!r}")
    return {name: _read_section(f"{path}, [{name}]", name, section) for name, section in plain.items()}


def _read_section(place: str, name: str, section: Mapping[str, Any]) -> dict[str, Any]:
    homes = RECORDS[name]
    read: dict[str, Any] = {}
    for key, value in section.items():
        if key not in homes:
            near = get_close_matches(key, homes, 3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(homes)}"
            unknown = f"no setting is called {key!r}; {hint}"
            raise ConfigError(f"{place}: {f'{key} belongs to [{_home(key)}]' if _home(key) else unknown}")
        is_whole = get_type_hints(homes[key])[key] is float and type(value) is int  # TOML may leave .0 out
        try:  # by itself: what depends on other settings is checked once all are known
            read[key] = getattr(homes[key](**{key: float(value) if is_whole else value}), key)
        except (ConfigError, OverflowError) as error:
            raise ConfigError(f"{place}: {error if isinstance(error, ConfigError) else f'{key}: {error}'}") from None
    return read


def _home(key: str) -> str:
    return next((section for section, homes in RECORDS.items() if key in homes), "")
