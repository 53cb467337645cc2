"""The command line: words come in, one command of the library runs, and an exit code goes out."""

import argparse
import io
import logging
import os
import sys
import traceback
from collections.abc import Sequence

from egocnn.cli.arguments import build_parser
from egocnn.cli.commands import find_command
from egocnn.cli.options import from_options, loaded_settings, spell_out
from egocnn.cli.output import check_out, print_remark
from egocnn.config import ALL, ModelConfig, ReadConfig, TrainConfig
from egocnn.errors import EgoCNNError
from egocnn.train.engines.distributed import only_for_train


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0 done, 2 refused with one line on stderr, 130 stopped by Ctrl-C."""
    sys.stderr = sys.stderr or io.StringIO()  # None where it is closed (2>&-), as for a daemon
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may be in any script, terminals may not
    options = argparse.Namespace(debug=False)
    try:
        words = spell_out(sys.argv[1:] if words is None else words, ModelConfig)
        options = build_parser(words).parse_args(words)
        logging.basicConfig(format="%(message)s", stream=sys.stderr)  # the library's remarks go to stderr, plainly
        level = logging.ERROR if options.quiet else logging.WARNING if options.json else logging.INFO
        logging.getLogger("egocnn").setLevel(level)
        if getattr(options, "offline", False):
            os.environ["EGOCNN_OFFLINE"] = "1"  # for worker processes, too
        if options.command != "train":
            only_for_train(options.command)
        TrainConfig(seed=options.seed)  # the others have no record that checks it
        check_out(options)
        find_command(options.command)[1](with_settings(options, words))
        print(end="", flush=True)
    except BrokenPipeError:  # the reader of our output has gone: not our error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt as stop:
        for text in stop.args:
            print_remark(f"egocnn: {text}")
        if not stop.args:  # perhaps in the midst of an import, which cannot be begun again
            print("egocnn: stopped", file=sys.stderr)
        return 130
    except Exception as error:
        reason = _one_line(error)
        if reason is None:  # a defect of ours: the traceback helps to find it
            raise
        if options.debug:
            traceback.print_exc()
        print_remark(f"egocnn: {reason}")
        return 2
    return 0


def with_settings(options: argparse.Namespace, words: Sequence[str]) -> argparse.Namespace:
    """The options again; a preset and settings files take the place of defaults, not of what is typed."""
    loaded = loaded_settings(options)
    options = build_parser(words, loaded).parse_args(words) if loaded else options
    is_training = "train" in getattr(options, "sections", ())
    if getattr(options, "target", None) == ALL or (is_training and options.target is None):
        from egocnn.data.read import with_named_targets

        # a model knows its own targets; elsewhere they are named once, for all records of how the data were read
        how, is_new = from_options(options, ReadConfig), "run_folder" not in options
        options.target = with_named_targets(options.data, how, guess=is_training).target if is_new else None
    return options


def _one_line(error: Exception) -> str | None:
    """What the user can do something about; None for anything else."""
    text = " ".join(str(error).split())
    signs = ("allocate memory", "out of memory", "size calculation overflowed")  # torch has no exception of its own
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(sign in text for sign in signs)):
        return "out of memory; try a smaller --width, --slots, --batch-size or --limit"
    if isinstance(error, OSError) and error.strerror:
        place = error.filename2 or error.filename
        return f"{place}: {error.strerror}" if place else error.strerror
    return text if isinstance(error, (EgoCNNError, OSError)) else None
