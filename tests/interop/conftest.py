"""What exported models are written and computed with."""

import pytest


@pytest.fixture(scope="session")
def libraries() -> None:
    for library in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(library, reason=f"{library} is not installed")
