"""Settings <-> command-line options: the fields of a record become flags, and flags become the record again. argparse
and not a larger library: the training path must run from a bare checkout where only torch, numpy, scikit-learn and
safetensors are installed.

What is typed goes before a TOML file (``--config``), that before a run (``--like``), that before ``--preset``, and that
before the defaults. A file has a section for each record: ``[read]``, ``[model]``, ``[train]`` and ``[explain]``."""

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from difflib import get_close_matches
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, get_args, get_type_hints

from egocnn.config import PRESETS, ExplainConfig, ModelConfig, ReadConfig, TrainConfig, check_fields, field_help
from egocnn.errors import ConfigError
from egocnn.files import regular

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config", bound="DataclassInstance")
Options = argparse.Namespace
Names = Sequence[str]

SHOWN: dict[type[Any], tuple[str, tuple[str, ...]]] = {
    ReadConfig: ("data", ("smiles", "target", "split")),
    ModelConfig: ("network", ("width", "depth")),
    TrainConfig: ("training", ("networks", "epochs")),
    ExplainConfig: ("explanation", ("technique", "select", "threshold", "top")),
}
"""The group of a record's options, and the fields whose options ``--help`` shows; ``--help-all`` shows all."""
FILE = "settings.toml"  # What the settings are called in a run folder.
Sections = dict[str, dict[str, Any]]


class Parser(argparse.ArgumentParser):
    """A parser that refuses with one line and exit code 2, and whose ``--help`` leaves out what few people need."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)  # --val for --validation would break with the next option
        self._rare: list[argparse.Action] = []
        meaning = "show every option and exit"
        self.add_argument("--help-all", action=_HelpAll, nargs=0, default=argparse.SUPPRESS, help=meaning)

    def add_option(self, group: str, *flags: str, rare: bool = False, **settings: Any) -> None:
        """Add an option to the group with this title; ``rare``: only ``--help-all`` shows it."""
        action = self.group(group).add_argument(*flags, **settings)
        if rare:
            self._rare.append(action)

    def add_switch(self, group: str, flag: str, meaning: str, *, rare: bool = False) -> None:
        """Add an option without a value, false unless it is typed."""
        self.add_option(group, flag, rare=rare, action="store_true", help=meaning)

    def group(self, title: str) -> argparse._ArgumentGroup:
        """The group of options with this title, a new one where there is none yet."""
        found = (group for group in self._action_groups if group.title == title)
        return next(found, None) or self.add_argument_group(title)

    def put_last(self, *titles: str) -> None:
        """Show the groups with these titles below all others."""
        self._action_groups.sort(key=lambda group: titles.index(group.title) + 1 if group.title in titles else 0)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but an option given two values is an error, unless it collects them."""
        words = [word.partition("=")[0] for word in takewhile(lambda word: word != "--", args or ())]
        for action in self.options():
            given = [word for word in words if word in action.option_strings]
            if len(given) > 1 and action.nargs != 0 and not isinstance(action, argparse._AppendAction):
                self.error(f"{given[-1]} is given twice")
        return super().parse_known_args(args, namespace)

    def _get_values(self, action: argparse.Action, words: list[str]) -> Any:
        if action.option_strings and "--" in words:  # of --limit=-- argparse makes a list without a value
            self.error(f"argument {'/'.join(action.option_strings)}: invalid value: '--'")
        return super()._get_values(action, words)

    def options(self) -> list[argparse.Action]:
        """Its arguments with a flag."""
        return [action for action in self._actions if action.option_strings]

    def short_usage(self) -> str:
        """The words without which the command does nothing."""
        bare = [each for each in self._actions if not each.option_strings]
        names = [f"[{each.metavar}]" if each.nargs == "?" else str(each.metavar) for each in bare]
        needed = [f"{each.option_strings[0]} {each.metavar}" for each in self.options() if each.required]
        return " ".join(["%(prog)s", *names, *needed, "[options]"])

    def format_help(self) -> str:
        """The options of every day."""
        if not self._rare:
            return super().format_help()
        texts = [action.help for action in self._rare]
        for action in self._rare:
            action.help = argparse.SUPPRESS
        text = super().format_help()
        for action, own in zip(self._rare, texts, strict=True):
            action.help = own
        hidden = len({action.dest for action in self._rare})
        return f"{text}\n{hidden} more {'option' if hidden == 1 else 'options'}: {self.prog} --help-all\n"

    def format_help_all(self) -> str:
        """Every option."""
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """One line on stderr, and exit code 2."""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}; see {self.prog} --help\n")


class _HelpAll(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        assert isinstance(parser, Parser)
        print(parser.format_help_all(), end="")
        parser.exit()


def add_options(
    parser: Parser, config: type[Any], *, group: str = "", everyday: Names | None = None, skip: Names = ()
) -> None:
    """One flag for every field, with its meaning and its default as help; ``everyday``, and ``group`` for a record that
    is not listed there: as in SHOWN."""
    usual = SHOWN.get(config, (group, ()))
    text = "COLUMN" if config is ReadConfig else "TEXT"
    meaning, types = field_help(config), get_type_hints(config)
    for field in fields(config):
        is_rare = field.name not in (usual[1] if everyday is None else everyday)
        default = None if field.default is MISSING else field.default
        for flag, settings in _flags(field.name, types[field.name], default, meaning[field.name], text).items():
            if field.name not in skip:
                parser.add_option(usual[0], flag, rare=is_rare, **settings)


def from_options(options: argparse.Namespace, config: type[Config]) -> Config:
    """The record that the flags describe; its own checks apply. None: not typed."""
    named = {f.name: getattr(options, f.name, None) for f in fields(config)}
    return config(**{name: value for name, value in named.items() if value is not None})


def spell_out(words: Sequence[str], config: type[Any]) -> list[str]:
    """Command-line words in which a switch that may take a word does not take one that belongs to the command. ``--tie
    MUTAG`` is a switch and a data set; argparse alone would take the set for what to tie."""
    types = get_type_hints(config)
    own = {"--" + f.name.replace("_", "-"): _words_of_switch(types[f.name]) for f in fields(config)}
    pairs = zip_longest(words, words[1:], fillvalue="")
    return [f"{word}=yes" if own.get(word) and after not in own[word] else word for word, after in pairs]


def _flags(name: str, annotation: Any, default: Any, meaning: str, word: str) -> dict[str, dict[str, Any]]:
    """The arguments of argparse for a field: its flag, or two for a switch that takes a word as well; ``word``: what
    the help calls a text"""
    flag, text = "--" + name.replace("_", "-"), meaning.replace("%", "%%")
    settings: dict[str, Any] = {"default": default, "help": text}
    if annotation is bool:
        return {flag: {**settings, "action": argparse.BooleanOptionalAction}}
    if words := _words_of_switch(annotation):
        switch = {"nargs": "?", "const": True, "choices": (True, *words), "metavar": "|".join(words)}
        switch["type"] = lambda text: text == "yes" or text
        off = {"dest": name, "action": "store_false", "default": default, "help": f"Not {flag}."}
        return {flag: {**settings, **switch}, f"--no{flag[1:]}": off}
    if default is not None and "default:" not in text:
        settings["help"] = f"{text} [{default}]"
    if annotation in (int, float):
        return {flag: {**settings, "type": annotation, "metavar": "N" if annotation is int else "X"}}
    choices = get_args(annotation)
    is_one_of = choices and all(isinstance(choice, str) for choice in choices)
    return {flag: {**settings, **({"choices": choices} if is_one_of else {"metavar": word})}}


def _words_of_switch(annotation: Any) -> tuple[str, ...]:
    """('auto',) for bool | Literal['auto']: a switch that can also be left to the data"""
    kinds = get_args(annotation)
    return tuple(word for kind in kinds if kind is not bool for word in get_args(kind)) if bool in kinds else ()


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
