"""How much faster, and how sure that is: medians of paired log ratios, and their bootstrap.

The i-th samples of all that a row compares were taken next to each other, so their ratio is free of
the machine's drift. A row's speed-up is the median ratio; its interval resamples the pairs. Over
models the geometric mean resamples the models first and then each one's pairs: how a suite of other
models of the kind would come out, which is wider than the noise of the clock. All draws follow from
one seed and the name of the job, so equal files give equal reports, whatever else is in them.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from math import erfc, log, sqrt

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95
FEWEST_PAIRS = 6  # of fewer the extremes, the widest interval there is, hold less than 95 %
FEWEST_MODELS = 3
_SEED = 20260715


@dataclass(frozen=True)
class Estimate:
    """A ratio, above 1 where the candidate is the faster. Without an interval, says why."""

    value: float
    low: float | None
    high: float | None
    count: int  # of pairs or of models
    why_no_interval: str
    draws: np.ndarray  # log ratios, as many as RESAMPLES


def paired_log_ratios(base, candidate):
    """log(base / candidate) of the pairs in which both are there, and how many are not."""
    pairs = min(len(base), len(candidate))
    ratios = np.log(base[:pairs]) - np.log(candidate[:pairs])
    kept = ratios[np.isfinite(ratios)]
    return kept, max(len(base), len(candidate)) - len(kept)


def of_pairs(log_ratios, name):
    """The median of a row's pairs; None where there are none. `name` seeds the draws."""
    count = len(log_ratios)
    if count == 0:
        return None
    draws = _resampled_medians(np.sort(log_ratios), _generator(name))
    why = "" if count >= FEWEST_PAIRS else f"only {count} pair{'' if count == 1 else 's'}"
    return _estimate(float(np.median(log_ratios)), draws, count, why)


def over_models(estimates, name):
    """The geometric mean; None of nothing. One model keeps its own interval."""
    count = len(estimates)
    if count == 0:
        return None
    if count == 1:
        one = estimates[0]
        return Estimate(one.value, one.low, one.high, 1, one.why_no_interval, one.draws)
    generator = _generator(name)
    models = generator.integers(count, size=(RESAMPLES, count))
    draw = generator.integers(RESAMPLES, size=(RESAMPLES, count))
    draws = np.stack([e.draws for e in estimates])[models, draw].mean(axis=1)
    mean = float(np.mean([np.log(e.value) for e in estimates]))
    why = "" if count >= FEWEST_MODELS else f"only {count} models"
    return _estimate(mean, draws, count, why)


def by_model(groups, name):
    """The geometric mean over models of which each has several estimates.

    Each first becomes one, so that a model with many rows does not count for many models.
    """
    return over_models([_joined(group) for group in groups.values()], name)


def _joined(group):
    """The mean of one model's estimates. They are all there are, so they are not resampled."""
    if len(group) == 1:
        return group[0]
    why = next((one.why_no_interval for one in group if one.why_no_interval), "")
    # Each in an order of its own: two may have been seeded with the same name.
    draws = np.mean([np.roll(one.draws, 97 * i) for i, one in enumerate(group)], axis=0)
    mean = float(np.mean([np.log(one.value) for one in group]))
    return _estimate(mean, draws, min(one.count for one in group), why)


def quotient(above, below):
    """above / below of two estimates whose draws are independent."""
    why = above.why_no_interval or below.why_no_interval
    # One is reversed, since both may have been seeded with the same name.
    draws = above.draws - below.draws[::-1]
    return _estimate(float(np.log(above.value / below.value)), draws,
                     min(above.count, below.count), why)


def chance_of_no_change(estimate):
    """The two-sided p value of a ratio of 1, by the normal distribution of the draws."""
    spread = float(np.std(estimate.draws))
    return 1.0 if spread == 0 else erfc(abs(log(estimate.value)) / spread / sqrt(2))


def discoveries(chances, rate=0.05):
    """Which findings stand when at most `rate` of those may be false (Benjamini-Hochberg)."""
    order = np.argsort(chances)
    limits = rate * np.arange(1, len(chances) + 1) / max(1, len(chances))
    below = np.nonzero(np.asarray(chances)[order] <= limits)[0]
    stands = np.zeros(len(chances), bool)
    if len(below):
        stands[order[: below[-1] + 1]] = True
    return stands


def _estimate(log_value, draws, count, why):
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.exp(np.percentile(draws, [tail, 100 - tail]))
    bounds = (None, None) if why else (float(low), float(high))
    return Estimate(float(np.exp(log_value)), *bounds, count, why, draws)


def _generator(name):
    return np.random.default_rng([_SEED, zlib.crc32(name.encode())])


def _resampled_medians(values, generator):
    """Medians of resamples of sorted values, without drawing the resamples.

    The k-th smallest of n uniform numbers has the distribution Beta(k, n - k + 1), and what lies
    above it is uniform again; n times such a number, rounded down, is the k-th smallest index.
    """
    count = len(values)
    k = (count + 1) // 2
    lower = generator.beta(k, count - k + 1, RESAMPLES)
    pick = np.minimum((lower * count).astype(int), count - 1)
    if count % 2:
        return values[pick]
    upper = lower + (1 - lower) * generator.beta(1, count - k, RESAMPLES)
    return (values[pick] + values[np.minimum((upper * count).astype(int), count - 1)]) / 2


def exactly(ratio):
    """A ratio that was counted, not sampled; it has no spread of its own."""
    return Estimate(float(ratio), None, None, 1, "one reading",
                    np.full(RESAMPLES, log(ratio)))
