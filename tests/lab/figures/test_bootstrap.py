"""The p-value of a power law by a bootstrap."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from egocnn.data.scalefree import Counts, PowerLaw, fit_power_law
from lab.figures.bootstrap import TABLE, draw_counts, draw_tail, goodness, share_from
from tests.data.test_scalefree import zipf


@settings(max_examples=20, deadline=None)
@given(st.floats(1.5, 4), st.integers(1, 40), st.integers(0, 1000))
def test_degrees_drawn_from_a_law_have_its_shares(exponent: float, start: int, seed: int) -> None:
    law = PowerLaw(exponent=exponent, start=start, distance=0, tail_nodes=1)
    drawn = draw_tail(law, 20_000, np.random.default_rng(seed))
    assert drawn.min() >= start
    for degree in (start, start + 1, start + 5, 3 * start + 20, start + TABLE, 2 * (start + TABLE)):
        share = float(share_from(law, np.array([degree]))[0])
        # exact where one node among thousands is expected, or none; as strict as five standard deviations elsewhere
        assert binomtest(int((drawn >= degree).sum()), 20_000, min(share, 1.0)).pvalue > 5.7e-7


def test_a_sample_has_as_many_nodes_and_below_the_tail_only_degrees_that_occur() -> None:
    counts = Counts.of(np.append(zipf(2.2, 2000, seed=0) + 9, [2, 2, 5] * 100))
    law = PowerLaw(exponent=2.2, start=10, distance=0, tail_nodes=2000)
    drawn = draw_counts(counts, law, np.random.default_rng(0))
    assert drawn.total == counts.total
    assert set(drawn.degree[drawn.degree < 10]) == {2, 5}
    assert (np.diff(drawn.degree) > 0).all()


def test_a_power_law_is_plausible_an_exponential_is_not_and_the_seed_decides() -> None:
    true, false = Counts.of(zipf(2.4, 2000, seed=4)), Counts.of(np.random.default_rng(0).poisson(6, 3000) + 1)
    law, other = fit_power_law(true), PowerLaw(exponent=1.6, start=1, distance=0.35, tail_nodes=3000)
    assert law is not None
    assert goodness(true, law, samples=30, seed=0) > 0.1
    assert goodness(false, other, samples=10, seed=0) == 0
    assert goodness(true, law, samples=30, seed=0) == goodness(true, law, samples=30, seed=0)
    assert len({goodness(true, law, samples=30, seed=seed) for seed in range(4)}) > 1
