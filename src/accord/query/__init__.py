"""What can be asked: one file a family of questions, and the small grammar of `where=`."""

from accord.query.algorithm import Algorithm
from accord.query.counts import Count, Histogram, count, histogram
from accord.query.grid import OnGrid
from accord.query.means import Mean, Sum, mean, sum
from accord.query.order import Extreme, Max, Min, Order, Quantile, max, median, min, quantile
from accord.query.record import Additive, Answer, Ends, Interval, Query, between
from accord.query.regression import Category, Coefficients, Numeric, Regression, regression
from accord.query.workload import Workload, workload

__all__ = [
    "Additive",
    "Algorithm",
    "Answer",
    "Category",
    "Coefficients",
    "Count",
    "Ends",
    "Extreme",
    "Histogram",
    "Interval",
    "Max",
    "Mean",
    "Min",
    "Numeric",
    "OnGrid",
    "Order",
    "Quantile",
    "Query",
    "Regression",
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
    "regression",
    "sum",
    "workload",
]
