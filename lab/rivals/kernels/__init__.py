"""Graph kernels with support vector machines, as rivals: the first four rows of the paper's tables.

Penalties and settings are chosen on the validation part; vocabularies, embeddings and samples come from the
training part alone. All kernels are normalised: a graph is like itself by 1.
"""

from typing import Any

from lab.rivals.kernels.embedded import WINDOW, EmbeddedKernel, WordCounts, adjacent_words, texts_of_graphs
from lab.rivals.kernels.laplacian import LaplacianKernel, Scale, Spread
from lab.rivals.kernels.machine import KernelMachine
from lab.rivals.kernels.subtree import SubtreeKernel
from lab.rivals.rival import Rival

__all__ = ["DGK", "KERNELS", "MLG", "SUBGRAPH2VEC", "WL", "KernelMachine"]

COMMON = "the degree stands in for node labels where there are none, and edge labels are not read"

WL = Rival(
    name="WL kernel",
    source="Shervashidze et al., Weisfeiler-Lehman graph kernels, JMLR 12 (2011)",
    library="support vector machine: scikit-learn (libsvm)",
    departures=f"subtrees are told apart by 64-bit hashes; 7 and 9 rounds are not tried; {COMMON}",
    build=lambda _seed: KernelMachine[int, Any](SubtreeKernel()),
)

DGK = Rival(
    name="DGK",
    source="Yanardag and Vishwanathan, Deep graph kernels, KDD 2015; the Weisfeiler-Lehman form",
    library="skip-gram embeddings: gensim; support vector machine: scikit-learn (libsvm)",
    departures=(
        "embeddings are learned on training graphs, not on all; once for up to 4 rounds, and how many are counted is "
        "chosen; the words of a round stand in random order; negative samples, 64 numbers a word, window 5; products "
        f"and lengths of embeddings are both tried; {COMMON}"
    ),
    build=lambda seed: KernelMachine[WordCounts, Any](
        EmbeddedKernel(texts_of_graphs, seed=seed, window=WINDOW, similarities=("product", "length"))
    ),
)

SUBGRAPH2VEC = Rival(
    name="Subgraph2vec",
    source="Narayanan et al., subgraph2vec, MLG workshop at KDD 2016; its deep Weisfeiler-Lehman kernel",
    library="skip-gram embeddings: gensim; support vector machine: scikit-learn (libsvm)",
    departures=(
        "embeddings are learned on training graphs, not on all; once for up to 4 rounds, and how many are counted is "
        f"chosen; 64 numbers a word; of more than 4 million pairs of adjacent words as many are drawn; {COMMON}"
    ),
    build=lambda seed: KernelMachine[WordCounts, Any](EmbeddedKernel(adjacent_words, seed=seed, window=1)),
)

MLG = Rival(
    name="MLG",
    source="Kondor and Pan, The multiscale Laplacian graph kernel, NIPS 2016",
    library="support vector machine: scikit-learn (libsvm)",
    departures=(
        "features come from 50 sampled training nodes, at most 10 a node; surroundings grow by one edge a level, "
        f"up to 3; eta and gamma are equal; {COMMON}"
    ),
    build=lambda seed: KernelMachine[Scale, Spread](LaplacianKernel(seed=seed)),
)

KERNELS = (WL, DGK, SUBGRAPH2VEC, MLG)
