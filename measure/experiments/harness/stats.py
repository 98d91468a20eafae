# SPDX-License-Identifier: Apache-2.0
"""Averages with their 95 % confidence intervals.

    mean([54.0, 53.8, 54.1])      Mean(mean=53.97, half=0.38, n=3): Student's t
    plus_minus(values)            '53.97 ± 0.38'
    middle(values)                Middle(median, low, high): of any distribution, by the sign test
"""
import math
import statistics
from collections import namedtuple

# 97.5 % of Student's t for 1 to 30 degrees of freedom
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
           2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
           2.052, 2.048, 2.045, 2.042)
NORMAL = 1.960

Mean = namedtuple('Mean', 'mean half n')
Middle = namedtuple('Middle', 'median low high')


def student(degrees):
    """Beyond the table within 0.002 of the true value"""
    return STUDENT[degrees - 1] if degrees <= len(STUDENT) else NORMAL + 2.4 / degrees


def mean(values):
    """half: of the interval's width; infinite for one value, which tells nothing about the others"""
    values = list(values)
    if len(values) == 1:
        return Mean(values[0], math.inf, 1)
    return Mean(statistics.fmean(values), student(len(values) - 1) * statistics.stdev(values)
                / math.sqrt(len(values)), len(values))


def plus_minus(values, form='.2f'):
    """The mean, and half of its interval where there is one"""
    got = mean(values)
    return f'{got.mean:{form}}' + (f' ± {got.half:{form}}' if math.isfinite(got.half) else '')


def middle(values):
    """The median and its interval: between the k-th least and the k-th greatest, where fewer than k
    heads out of n throws of a coin have at most 2.5 %.  Few outliers don't matter, however far out.
    Of less than six values: the least and the greatest."""
    values = sorted(values)
    n, k, chance = len(values), 0, 0.0
    while (chance := chance + math.comb(n, k) / 2 ** n) <= 0.025:
        k += 1
    k = max(1, k)
    return Middle(statistics.median(values), values[k - 1], values[-k])
