"""Does ``egocnn serve`` stand good, hostile and slow clients for minutes on end? Statuses, latency, memory as JSON.

    python -m lab measure serve_soak --minutes 5 -o results/serve_soak.json

Good clients ask for one molecule of 20 atoms after the other and wait a little in between. Hostile ones send, in turn,
what takes native code long, bodies that are too large, broken JSON, what is no SMILES, unknown paths and random bytes.
Slow ones open a connection, send half a request, and hold on. All run on the machine of the server, which has two
workers; latency is that of good requests that were answered. ``passed``: the server answers with no 5xx but 503, still
answers in the end, and its memory has not doubled. The network has its default size and is untrained.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from lab.bench.cpu.serve_load import facts_of, molecules, served, untrained
from lab.record import arguments, one_line, write_measured

PATIENCE = 60.0  # seconds after which a client gives up on an answer
PAUSE = 0.05  # between two requests of a good client
HELD = 15.0  # seconds for which a slow client holds its half request


def ask(address: str, path: str, body: bytes | None) -> int:
    """The status of the answer."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE)
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, path, body, {"Content-Type": "application/json"} if body is not None else {})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def hard_molecule(atoms: int = 90) -> str:
    """A cage of rings within rings, which is slow to parse, to rank and to draw."""
    from rdkit import Chem

    molecule = Chem.RWMol()
    for _ in range(atoms):
        molecule.AddAtom(Chem.Atom(0))
    for first in range(atoms):
        for step in (1, 7, 23):
            if molecule.GetBondBetweenAtoms(first, (first + step) % atoms) is None:
                molecule.AddBond(first, (first + step) % atoms, Chem.BondType.SINGLE)
    smiles: str = Chem.MolToSmiles(molecule)
    return smiles


def raw(address: str, data: bytes, *, hold: float = 0.0) -> None:
    """Send bytes that are no whole request, and hang up, or hold on first."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=PATIENCE) as connection:
        connection.sendall(data)
        if hold:
            time.sleep(hold)


class Soak:
    """Clients in threads of their own, and what they were answered."""

    def __init__(self, address: str, until: float) -> None:
        self.address, self.until = address, until
        self.statuses: dict[str, Counter[str]] = {"good": Counter(), "hostile": Counter(), "slow": Counter()}
        self.seconds: list[float] = []
        self._lock = threading.Lock()

    def keep_on(self, kind: str, turn: Callable[[int], int | None]) -> None:
        """Take turns until the time is over."""
        for number in count():
            if time.monotonic() >= self.until:
                return
            started = time.monotonic()
            try:
                status = str(turn(number) or "no answer wanted")
            except (OSError, http.client.HTTPException) as error:
                status = type(error).__name__
            with self._lock:
                self.statuses[kind][status] += 1
                if kind == "good" and status == "200":
                    self.seconds.append(time.monotonic() - started)

    def run(self, good: int, hostile: int, slow: int, smiles: Sequence[str], seed: int) -> None:
        """All clients together, until the last has ended."""
        draw = random.Random(seed)
        hard, noise = hard_molecule(), draw.randbytes(4096)
        bodies = [json.dumps({"smiles": text}).encode() for text in smiles]

        def ask_for_a_molecule(number: int) -> int:
            time.sleep(PAUSE)
            return ask(self.address, "/explain", bodies[(number * 7 + threading.get_ident()) % len(bodies)])

        def attack(number: int) -> int | None:
            attacks: list[tuple[str, bytes | None]] = [
                ("/explain", json.dumps({"smiles": hard}).encode()),
                ("/explain", json.dumps({"smiles": "C" * 5_000_000}).encode()),
                ("/explain", b'{"smiles": ["C", '),
                ("/explain", json.dumps({"smiles": "c1ccc\x00" + "(" * 2000}).encode()),
                ("/../../etc/passwd", None),
                ("/explain", b"[" * 100_000),
            ]
            if number % (len(attacks) + 1) == len(attacks):
                raw(self.address, noise)
                return None
            return ask(self.address, *attacks[number % (len(attacks) + 1)])

        def dawdle(number: int) -> None:
            half = b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            raw(self.address, half if number % 2 else half + b"Content-Length: 1000\r\n\r\n{", hold=HELD)

        turns = [("good", ask_for_a_molecule)] * good + [("hostile", attack)] * hostile + [("slow", dawdle)] * slow
        threads = [threading.Thread(target=self.keep_on, args=each) for each in turns]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def megabytes(process: int) -> float:
    """Resident memory of a process and of those that it started."""
    pages = sum(int(words[21]) for words in facts_of(process))
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def main(words: Sequence[str]) -> None:
    parser = arguments("serve_soak", __doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--good", type=int, default=4, help="clients [4]")
    parser.add_argument("--hostile", type=int, default=2, help="clients [2]")
    parser.add_argument("--slow", type=int, default=8, help="clients [8]")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    smiles = molecules()
    with tempfile.TemporaryDirectory() as folder:
        untrained(smiles).save(folder)
        with served(Path(folder), 2) as (address, process):
            for text in smiles[:20]:  # both workers must have met the model
                ask(address, "/explain", json.dumps({"smiles": text}).encode())
            before = megabytes(process)
            soak = Soak(address, time.monotonic() + 60 * options.minutes)
            soak.run(options.good, options.hostile, options.slow, smiles, options.seed)
            after, health = megabytes(process), ask(address, "/health", None)
    wrong = sum(
        n for one in soak.statuses.values() for status, n in one.items() if status[0] == "5" and status != "503"
    )
    latency = np.percentile(soak.seconds, (50, 99)).tolist() if soak.seconds else [None, None]
    measured: dict[str, Any] = {
        "what": one_line(__doc__),
        "minutes": options.minutes,
        "clients": {"good": options.good, "hostile": options.hostile, "slow": options.slow},
        "answers": {kind: dict(several.most_common()) for kind, several in soak.statuses.items()},
        "good_seconds": {name: value and round(value, 3) for name, value in zip(("50", "99"), latency, strict=True)},
        "server_errors_but_503": wrong,
        "health_in_the_end": health,
        "megabytes": {"before": before, "after": after},
        "passed": wrong == 0 and health == 200 and after < 2 * before,
        "load_average": [round(value, 1) for value in os.getloadavg()],
    }
    write_measured("serve_soak", words, options.out, measured, "fastapi", "uvicorn", "rdkit")
