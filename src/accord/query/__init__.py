"""What can be asked: one file a family of questions, and the small grammar of `where=`."""

from accord.query.algorithm import Algorithm
from accord.query.counts import Count, Histogram, count, histogram
from accord.query.grid import OnGrid
from accord.query.means import Mean, Rows, Sum, mean, rows, sum
from accord.query.members import MeanWhere, SumWhere
from accord.query.order import Extreme, Max, Min, Order, Quantile, max, median, min, quantile
from accord.query.parts import Grouped, Part
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
    "Grouped",
    "Histogram",
    "Interval",
    "Max",
    "Mean",
    "MeanWhere",
    "Min",
    "Numeric",
    "OnGrid",
    "Order",
    "Part",
    "Quantile",
    "Query",
    "Regression",
    "Rows",
    "Sum",
    "SumWhere",
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
    "rows",
    "sum",
    "workload",
]
