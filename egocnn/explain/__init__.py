"""Find the critical structure behind a prediction: a trained model and graphs -> one CriticalStructure per graph."""

from egocnn.explain.explain import explain
from egocnn.explain.techniques.attention import AttentionHead, fit_attention, load_attention, save_attention

__all__ = ["AttentionHead", "explain", "fit_attention", "load_attention", "save_attention"]
