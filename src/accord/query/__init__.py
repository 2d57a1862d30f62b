"""What can be asked: one file a family of questions, and the small grammar of `where=`."""

from accord.query.counts import Count, Histogram, count, histogram
from accord.query.grid import OnGrid
from accord.query.means import Mean, Sum, mean, sum
from accord.query.order import Extreme, Max, Min, Order, Quantile, max, median, min, quantile
from accord.query.record import Additive, Answer, Ends, Interval, Query, between
from accord.query.workload import Workload, workload

__all__ = [
    "Additive",
    "Answer",
    "Count",
    "Ends",
    "Extreme",
    "Histogram",
    "Interval",
    "Max",
    "Mean",
    "Min",
    "OnGrid",
    "Order",
    "Quantile",
    "Query",
    "Sum",
    "Workload",
    "between",
    "count",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "sum",
    "workload",
]
