"""What all tests share: quiet use of one core, and the folder of real data where there is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch is imported after this; small tensors gain nothing from more
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # GPU kernels run all the same; to be said before Triton is imported
settings.register_profile("egocnn", deadline=None)
settings.load_profile("egocnn")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with tu/, explain/ and splits/."""
    folder = os.environ.get("EGOCNN_DATA")
    if not folder:
        pytest.skip("EGOCNN_DATA does not name the folder with the data sets")
    if not Path(folder, "tu").is_dir():
        pytest.skip(f"EGOCNN_DATA names {folder}, which has no folder tu")
    return Path(folder)
