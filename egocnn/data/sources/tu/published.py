"""The names under which the TU collection publishes its data sets: no other name is ever sent to its server.

The list is that of https://chrsmrrs.github.io/datasets/docs/datasets. The name that a user gives may be a mistyped file
name or a confidential molecule; neither may leave this machine.
"""

from __future__ import annotations

from difflib import get_close_matches

SMALL_MOLECULES = """
AIDS alchemy_full BZR BZR_MD COX2 COX2_MD DHFR DHFR_MD ER_MD FRANKENSTEIN Mutagenicity MUTAG NCI1 NCI109 PTC_FM PTC_FR
PTC_MM PTC_MR QM9 ZINC_full ZINC_test ZINC_train ZINC_val
"""
SCREENED_CELLS = "MCF-7 MOLT-4 NCI-H23 OVCAR-8 P388 PC-3 SF-295 SN12C SW-620 UACC257 Yeast"  # each also with hydrogens
TOX21_ASSAYS = "AhR AR AR-LBD ARE aromatase ATAD5 ER ER-LBD HSE MMP p53 PPAR-gamma"  # each published in three parts
BIOINFORMATICS = "DD ENZYMES KKI OHSU Peking_1 PROTEINS PROTEINS_full"
COMPUTER_VISION = """
COIL-DEL COIL-RAG Cuneiform Fingerprint FIRSTMM_DB Letter-high Letter-low Letter-med MSRC_9 MSRC_21 MSRC_21C
"""
SOCIAL_NETWORKS = """
COLLAB dblp_ct1 dblp_ct2 DBLP_v1 deezer_ego_nets facebook_ct1 facebook_ct2 github_stargazers highschool_ct1
highschool_ct2 IMDB-BINARY IMDB-MULTI infectious_ct1 infectious_ct2 mit_ct1 mit_ct2 REDDIT-BINARY REDDIT-MULTI-5K
REDDIT-MULTI-12K reddit_threads tumblr_ct1 tumblr_ct2 twitch_egos TWITTER-Real-Graph-Partial
"""
SYNTHETIC = "COLORS-3 SYNTHETIC SYNTHETICnew Synthie TRIANGLES"

PUBLISHED = frozenset(
    [
        *" ".join([SMALL_MOLECULES, BIOINFORMATICS, COMPUTER_VISION, SOCIAL_NETWORKS, SYNTHETIC]).split(),
        *(f"{name}{hydrogens}" for name in SCREENED_CELLS.split() for hydrogens in ("", "H")),
        *(f"Tox21_{name}_{part}" for name in TOX21_ASSAYS.split() for part in ("training", "testing", "evaluation")),
    ]
)


def similar_names(name: str) -> list[str]:
    """Up to three published names that are spelled much like this one, the most similar first."""
    by_small_letters = {each.lower(): each for each in sorted(PUBLISHED)}
    return [by_small_letters[each] for each in get_close_matches(name.lower(), by_small_letters, n=3, cutoff=0.75)]
