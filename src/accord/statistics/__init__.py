"""What can be asked: one statistic a file, and what they share.

A statistic is a constructor (`mean`), a frozen question (`Mean`) with its Encoding (which integers a person
adds) and its target under each relation (what a mechanism answers). `ALL` names them; adding one touches its
own file, this list and the package's own `__init__`.
"""

from accord.statistics.algorithm import Algorithm
from accord.statistics.correlation import CORRELATION, Correlation, correlation
from accord.statistics.count import COUNT, Count, count
from accord.statistics.covariance import COVARIANCE, Covariance, covariance
from accord.statistics.crosstab import CROSSTAB, crosstab
from accord.statistics.encoding import Category, Codes, Encoding, Grid, Indicator, Numeric, OneOf
from accord.statistics.extremes import MAX, MIN, Max, Min, max, min
from accord.statistics.grid import PER_PERSON, OnGrid
from accord.statistics.groups import Grouped, target_and_moves
from accord.statistics.histogram import HISTOGRAM, Histogram, histogram
from accord.statistics.mean import MEAN, Mean, mean
from accord.statistics.missing import reporting_missing
from accord.statistics.part import Part
from accord.statistics.proportion import PROPORTION, Proportion, proportion
from accord.statistics.quantile import MEDIAN, QUANTILE, Quantile, median, quantile
from accord.statistics.query import Answer, Ends, Interval, Query
from accord.statistics.regression import REGRESSION, Coefficients, Regression, regression
from accord.statistics.statistic import Statistic
from accord.statistics.sum import ROWS, SUM, Rows, Sum, rows, sum
from accord.statistics.target import Target
from accord.statistics.top import TOP, top
from accord.statistics.variance import STD, VARIANCE, Std, Variance, std, variance
from accord.statistics.workload import Workload, workload

ALL: tuple[Statistic, ...] = (
    COUNT,
    CROSSTAB,
    TOP,
    SUM,
    MEAN,
    PROPORTION,
    VARIANCE,
    STD,
    COVARIANCE,
    CORRELATION,
    HISTOGRAM,
    MEDIAN,
    QUANTILE,
    MIN,
    MAX,
    ROWS,
    REGRESSION,
)
"""Every statistic that can be asked for by name, in the order in which the command line lists them."""

__all__ = [
    "ALL",
    "PER_PERSON",
    "Algorithm",
    "Answer",
    "Category",
    "Codes",
    "Coefficients",
    "Correlation",
    "Count",
    "Covariance",
    "Encoding",
    "Ends",
    "Grid",
    "Grouped",
    "Histogram",
    "Indicator",
    "Interval",
    "Max",
    "Mean",
    "Min",
    "Numeric",
    "OnGrid",
    "OneOf",
    "Part",
    "Proportion",
    "Quantile",
    "Query",
    "Regression",
    "Rows",
    "Statistic",
    "Std",
    "Sum",
    "Target",
    "Variance",
    "Workload",
    "correlation",
    "count",
    "covariance",
    "crosstab",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "proportion",
    "quantile",
    "regression",
    "reporting_missing",
    "rows",
    "std",
    "sum",
    "target_and_moves",
    "top",
    "variance",
    "workload",
]
