"""What can be asked: one file a family of questions, and the small grammar of `where=`."""

from accord.query.counts import Count, Histogram, count, histogram
from accord.query.means import Mean, Sum, mean, sum
from accord.query.record import Additive, Answer, Interval, Query, between

__all__ = [
    "Additive",
    "Answer",
    "Count",
    "Histogram",
    "Interval",
    "Mean",
    "Query",
    "Sum",
    "between",
    "count",
    "histogram",
    "mean",
    "sum",
]
