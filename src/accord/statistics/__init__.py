"""What can be asked: one file a family of questions, and the small grammar of `where=`."""

from accord.statistics.algorithm import Algorithm
from accord.statistics.counts import Count, Histogram, count, histogram
from accord.statistics.encoding import Category, Codes, Encoding, Grid, Indicator, Numeric, OneOf
from accord.statistics.grid import OnGrid
from accord.statistics.means import Mean, Rows, Sum, mean, rows, sum
from accord.statistics.members import MeanWhere, SumWhere
from accord.statistics.order import Extreme, Max, Min, Order, Quantile, max, median, min, quantile
from accord.statistics.parts import Grouped, Part
from accord.statistics.record import Additive, Answer, Ends, Interval, Query, between
from accord.statistics.regression import Coefficients, Regression, regression
from accord.statistics.workload import Workload, workload

__all__ = [
    "Additive",
    "Algorithm",
    "Answer",
    "Category",
    "Codes",
    "Coefficients",
    "Count",
    "Encoding",
    "Ends",
    "Extreme",
    "Grid",
    "Grouped",
    "Histogram",
    "Indicator",
    "Interval",
    "Max",
    "Mean",
    "MeanWhere",
    "Min",
    "Numeric",
    "OnGrid",
    "OneOf",
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
