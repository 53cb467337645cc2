"""Our models in other libraries' terms: scikit-learn estimators, PyTorch Geometric modules, ONNX files."""
