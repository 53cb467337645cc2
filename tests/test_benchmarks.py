"""The scripts that measure: they run, and write what they promise."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_preparing_is_measured_on_growing_graphs(tmp_path: Path) -> None:
    out = tmp_path / "prepare.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "prepare.py"), "--quick", "-o", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    result = json.loads(out.read_text())
    for family in ("molecules", "network"):
        curve = result["growth"][family]["curve"]
        assert curve[0]["edges"] < curve[1]["edges"]
        assert all(row["prepare_seconds"] > 0 and row["peak_gigabytes"] > 0 for row in curve)
    with out.with_suffix(".csv").open() as file:
        assert len(list(csv.DictReader(file))) == 4
    assert {"command", "date", "machine", "versions"} <= result.keys()
