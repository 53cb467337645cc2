"""What survives a crash: training progress <-> one file that is always whole. The file holds weights, best weights,
optimiser state and history together, so no two of them can disagree, and a digest of them all, so that a damaged file
never passes for another training."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from egocnn.data.sources.text import one_line
from egocnn.errors import RunError
from egocnn.files import regular, replacing
from egocnn.model import under
from egocnn.train.engines.common import Progress
from egocnn.train.history import History

UNREADABLE = (SafetensorError, LookupError, ValueError, TypeError, RuntimeError, AttributeError)
"""What reading a damaged checkpoint may raise."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint file of one run, and what the run is: a checkpoint of another run is refused."""

    path: Path
    fingerprint: str  # names the data and settings; see `egocnn.train.run.fingerprint`

    def keep(self, progress: Sequence[Progress]) -> None:
        """Store the progress of all networks; the last file stays whole until this one is."""
        with replacing(self.path) as temporary:
            # not save_file, which has a temporary file of its own that a kill would leave
            temporary.write_bytes(save(pack(progress, self.fingerprint)))

    def resume(self, progress: Sequence[Progress]) -> None:
        """Fill ``progress`` from the file; leave it fresh where there is none yet."""
        if not self.path.exists():
            return
        try:
            is_ours = unpack(load_file(regular(self.path)), self.fingerprint, progress)
        except UNREADABLE as error:
            reason = one_line(str(error), 200)
            raise RunError(f"{self.path}: damaged ({reason}); --overwrite starts the run anew") from None
        if not is_ours:
            raise RunError(f"{self.path.parent}: was started with other data or settings; use them, or --overwrite")

    @property
    def is_of_this_run(self) -> bool:
        """Whether there is a whole checkpoint of the same data and settings."""
        try:
            return bool(_note(load_file(regular(self.path)))["fingerprint"] == self.fingerprint)
        except (OSError, *UNREADABLE):
            return False


def pack(progress: Sequence[Progress], fingerprint: str) -> dict[str, Tensor]:
    """All of the progress as tensors that can be written, or sent to another process."""
    tensors: dict[str, Tensor] = {}
    for each, of in zip(progress, _prefixes(len(progress)), strict=True):
        moments = each.optimizer.state_dict()["state"]
        states = {"network": each.network.state_dict(), "best": each.best}
        states |= {f"optimizer.{number}": own for number, own in moments.items()}
        tensors |= {f"{of}{kind}.{name}": value for kind, own in states.items() for name, value in own.items()}
    histories = [each.history.to_plain() for each in progress]
    note = {"fingerprint": fingerprint, "history": histories[0] if len(progress) == 1 else histories}
    tensors["note"] = _letters(json.dumps(note).encode())
    # safetensors refuses tensors that share storage, as those of tied layers do; to copy all takes long, every epoch
    seen: set[int] = set()
    for name, value in tensors.items():
        flat = value.detach().cpu().contiguous()
        place = flat.untyped_storage().data_ptr()
        tensors[name] = flat.clone() if place in seen else flat
        seen.add(place)
    return sealed(tensors)


def unpack(tensors: dict[str, Tensor], fingerprint: str, progress: Sequence[Progress]) -> bool:
    """Fill ``progress`` with what :func:`pack` made; false, and nothing changed, where it is of another run."""
    note = _note(tensors)
    if note["fingerprint"] != fingerprint:
        return False
    histories = [note["history"]] if len(progress) == 1 else note["history"]
    for each, of, history in zip(progress, _prefixes(len(progress)), histories, strict=True):
        # on the CPU: network and optimiser copy what they load to where they are
        each.network.load_state_dict(under(f"{of}network.", tensors))
        each.best = under(f"{of}best.", tensors)
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in under(f"{of}optimizer.", tensors).items():
            number, moment = name.split(".", 1)
            moments.setdefault(int(number), {})[moment] = value
        groups = each.optimizer.state_dict()["param_groups"]
        each.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        each.history = History.from_plain(history)
    return True


def _prefixes(networks: int) -> list[str]:
    """What the names of each network's tensors begin with; those of a single one need nothing to tell them apart."""
    return [""] if networks == 1 else [f"{number}/" for number in range(networks)]


def _note(tensors: dict[str, Tensor]) -> Any:
    """The texts among the tensors, taken out of them, and proved to be what was written."""
    check_seal(tensors)
    return json.loads(tensors.pop("note").numpy().tobytes())


def sealed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, with one more that holds a checksum of them all."""
    return {**tensors, "digest": _digest(tensors)}


def check_seal(tensors: dict[str, Tensor]) -> None:
    """Take the checksum out of the tensors; they must be those that it was made of."""
    if not torch.equal(tensors.pop("digest"), _digest(tensors)):
        raise ValueError("its checksum differs")


def _digest(tensors: dict[str, Tensor]) -> Tensor:
    """32 bytes that change with any name, shape or number; safetensors itself does not notice a flipped bit."""
    digest = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)};".encode())
        digest.update(value.contiguous().flatten().view(torch.uint8).numpy().data)  # read in place, not copied
    return _letters(digest.digest())


def _letters(text: bytes) -> Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)
