"""A trained model -> one ONNX file that other runtimes compute, and graphs -> the arrays that it reads."""

from egocnn.interop.onnx.plain import Input, PlainNetwork, inputs_for, inputs_of
from egocnn.interop.onnx.write import Exported, export_onnx

__all__ = ["Exported", "Input", "PlainNetwork", "export_onnx", "inputs_for", "inputs_of"]
