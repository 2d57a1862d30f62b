"""docs/report.md: what it names exists, its formulas are plain, and the figures that it quotes come out again where that takes seconds.

Not computed again: what is quoted of the real releases of docs/figures/medians.py and totals.py, whose noise has no seed, of tried.py, of an
audit, and of regressions.py, which is compared with docs/mechanisms.md.
"""

import csv
import importlib.util
import re
from functools import cache
from importlib.resources import files
from itertools import product
from math import e, exp, inf, log
from pathlib import Path

import numpy as np
import planted
import planted_programs
import pytest

import accord
from accord.lab import populations, specs
from accord.statistics.box import variance
from accord.theory import clip

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "report.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.replace("−", "-").split())


def said(pattern, text=TEXT):
    """The numbers that are said once, where each # of the pattern is."""
    number = r"([\d,]*\d(?:\.\d+)?)"
    (found,) = re.findall(re.escape(pattern).replace(r"\#", number).replace(r"\ ", " "), text)
    return [float(x.replace(",", "")) for x in ([found] if isinstance(found, str) else found)]


@cache
def script(name):
    """One of docs/figures, without running it."""
    at = importlib.util.spec_from_file_location(f"figure_of_{name}", DOCS / "figures" / f"{name}.py")
    module = importlib.util.module_from_spec(at)
    at.loader.exec_module(module)
    return module


def points(figure):
    """Of a figure of the papers."""
    text = (DOCS / "reproduction" / f"{figure}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def redrawn(figure):
    """{(panel, method, x): value}, of a figure of curves."""
    return {(row["panel"], row["method"], row["x"]): float(row["value"]) for row in points(figure)}


# ---- what is named -----------------------------------------------------------------------------------------


def anchors(page):
    """Of a page's headings, as links name them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", PAGE)
    assert len(links) > 30
    for page, anchor in links:
        target = DOCS / page if page else DOCS / "report.md"
        assert target.exists(), page
        assert not anchor or anchor in anchors(target), (page, anchor)


def test_figures_exist_and_are_drawn_by_the_script_that_is_named_below_them():
    figures = re.findall(r"!\[[^\]]+\]\((\S+)\)\n\n\*(.*?)\*\n\n", PAGE, re.DOTALL)
    assert len(figures) == PAGE.count("![") == 11
    for figure, caption in figures:
        path, caption = DOCS / figure, " ".join(caption.split())
        assert path.stat().st_size > 10_000
        if figure.startswith("reproduction"):
            assert f"`accord reproduce {path.stem}`" in caption
        else:
            assert f"`python docs/figures/{path.stem}.py`" in caption
            assert path.name in path.with_suffix(".py").read_text(encoding="utf-8")


def test_files_and_commands_exist():
    named = set(re.findall(r"(?:docs|tests)/[\w/\-]+\.(?:py|csv|md)", PAGE))
    assert len(named) > 30
    for name in named:
        assert (ROOT / name).exists(), name
    for module in re.findall(r"`(\w+/\w+\.py)`", PAGE):
        assert (ROOT / "src" / "accord" / module).exists(), module


def test_every_statement_is_listed_proved_and_numbered_in_order():
    stated = re.findall(r"^\*\*(?:Theorem|Proposition) (\d+)", PAGE, re.MULTILINE)
    assert [int(number) for number in stated] == list(range(1, 21))
    ends = PAGE.count("∎")
    assert ends == PAGE.count("*Proof.*") == 20
    table = PAGE[PAGE.index("| | statement") : PAGE.index("*How to read the figures.*")]
    listed = {
        number
        for first, last in re.findall(r"(\d+)(?:–(\d+))?(?=[,\]])", table)
        for number in range(int(first), int(last or first) + 1)
    }
    assert listed >= set(range(1, 21))


def test_references_are_cited_and_citations_are_listed():
    body, references = PAGE.split("## References\n")
    for entry in re.split(r"^- ", references, flags=re.MULTILINE)[1:]:
        if entry.startswith("**["):
            assert entry[2:5] in body
            continue
        surname = re.match(r"(?:[A-Z]\.[- ])+(?:[A-Z]\. )*([\w\-]+)", entry)[1]
        years = re.findall(r"\b(?:19|20)\d\d\b", entry)
        assert any(re.search(rf"{surname}\b.{{0,90}}?{year}", " ".join(body.split())) for year in years), (
            surname,
            years,
        )


# ---- formulas ----------------------------------------------------------------------------------------------

COMMANDS = (
    "Bigl Bigr Delta alpha cdot delta eta exp frac ge in infty kappa lambda lceil ldots le lfloor ln lvert mathrm "
    "max min mu ne pi prod propto qquad rceil rfloor rho rvert sigma sim sqrt sum tau text theta to varepsilon , ; { }"
)
"""Those that are known to become MathML when the site is built."""


def formulas():
    text = re.sub(r"`[^`]*`", "", PAGE)
    displayed = re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL)
    inline = re.findall(r"\$([^$]+)\$", re.sub(r"\$\$.+?\$\$", "", text, flags=re.DOTALL))
    return displayed, inline


def test_formulas_are_plain():
    displayed, inline = formulas()
    assert len(displayed) > 15 and len(inline) > 500
    assert re.sub(r"`[^`]*`", "", PAGE).count("$") == 4 * len(displayed) + 2 * len(inline)
    for formula in (*displayed, *inline):
        assert set(re.findall(r"\\([A-Za-z]+|.)", formula)) <= set(COMMANDS.split()), formula
        assert re.search(r"[^\x00-\x7f]", formula) is None, formula
        bare = formula.replace(r"\{", "").replace(r"\}", "")
        assert bare.count("{") == bare.count("}"), formula
        for left, right in ((r"\lvert", r"\rvert"), (r"\lceil", r"\rceil"), (r"\Bigl", r"\Bigr")):
            assert formula.count(left) == formula.count(right), formula


# ---- one function, quantiles -------------------------------------------------------------------------------


def test_charges_of_the_bundled_people():
    people = accord.table(str(files("accord.data") / "people.parquet"), epsilon="epsilon")
    plan = people.plan(accord.mean("income", bounds=(0, 200_000), missing="none"))
    assert said("Public people ($\\infty$) are charged #") == [round(plan.charges[inf], 3)]
    median = accord.median("income", bounds=(0, 200_000), missing="none")
    predicted = [round(people.plan(median, name).rmse_here, 2) for name in ("mix", "rank")]
    assert said("which is in their predictions (# and #)") == predicted


def test_constants_of_tau():
    """The table's rows, from targets of plans."""
    assert variance(1) == pytest.approx(2) and variance(20) == pytest.approx(21 * 22 / 3)
    levels, people = np.array([0.1, 0.5]), np.array([700, 300])
    assert clip(levels, people, 8.0) == pytest.approx((1 + 8 / (700 * 0.01)) * 0.1)  # R·ε₁


def test_tables_of_the_papers():
    redone = redrawn("C-table2")
    high, low = ([-redone["", name, x] for name in ("ADPM", "LDPE")] for x in ("0.0", "1.0"))
    assert said("ln MSE of `affine` (ADPM) is -# and -#") == pytest.approx([high[0], low[0]], abs=0.005)
    assert said("of LDPE -# and -#.") == pytest.approx([high[1], low[1]], abs=0.005)
    assert said("maxima of that gain are # with public people and # with two finite levels") == pytest.approx(
        [max(float(row["value"]) for row in points(figure)) for figure in ("Z-fig1", "Z-fig2")], abs=0.005
    )


def test_medians_of_the_papers():
    redone = redrawn("F-fig2")
    for levels, share in product(("0.1, 1", "0.01, 10"), ("0.5", "0.9")):
        row = f"| $\\varepsilon\\in\\{{{levels.replace(' ', '')}\\}}$, "
        row += "half private" if share == "0.5" else "90 % private"
        told = said(row + " | # | # | # | # |")
        expected = [redone[levels, name, share] for name in ("PE", "weighted", "mix", "rank")]
        assert told == pytest.approx(expected, rel=0.005)
    gains = {
        levels: max(
            1 - redone[levels, "rank", x] / value
            for (panel, name, x), value in redone.items()
            if (panel, name) == (levels, "weighted")
        )
        for levels in ("0.1, 1", "0.01, 10")
    }
    assert 0.09 < gains["0.1, 1"] < 0.11  # "up to a tenth"
    assert said("are a thousand times apart # % at most") == [round(100 * gains["0.01, 10"])]
    redone = redrawn("J-fig2c")
    told = said(
        "RMSE of # at $\\varepsilon_C=0.01$, where PE has # and S-avg, under its weaker guarantee, #;"
    )
    assert told == [round(redone["", name, "0.01"], 1) for name in ("rank", "PE", "S-avg")]
    told = said("PE (#) and `minimum` (#) are as good as `rank` (#)")
    assert told == [round(redone["", name, "0.5"], 1) for name in ("PE", "M", "rank")]


def test_a_natural_reading_of_pe_breaks_the_promise():
    levels, rank, size = (0.05, 0.5, 2.0), 1, 4

    def law(points, is_safe):
        cost = []
        for r in range(size):
            below = sorted(level for x, level in zip(points, levels, strict=True) if x < r)
            above = sorted(level for x, level in zip(points, levels, strict=True) if x > r)
            if is_safe:
                cost.append(
                    sum(above[: max(0, len(above) - (2 - rank))]) + sum(below[: max(0, len(below) - rank)])
                )
            else:
                off = len(below) - rank
                cost.append(sum(below[:off]) if off > 0 else sum(above[:-off]))
        weights = np.exp(-np.array(cost) / 2)
        return weights / weights.sum()

    def loss(is_safe):
        here, there = law((2, 2, 3), is_safe), law((1, 2, 3), is_safe)
        return float(np.abs(np.log(here / there)).max())

    assert loss(is_safe=True) <= 0.05
    assert said("a loss of # where 0.05 is allowed") == [round(loss(is_safe=False), 2)]


# ---- sampling, regression ----------------------------------------------------------------------------------


def test_chances_to_be_kept():
    def pi(level, t):
        s = t / 2
        return (exp(level) - 1) / (exp(s) - 1 + exp(level) * (1 - exp(-s)))

    def halved(level, t):
        return (exp(level / 2) - 1) / (exp(t / 2) - 1)

    told = said("is kept with probability # instead of #, # % more often")
    assert told == [
        round(pi(0.1, 1), 4),
        round(halved(0.1, 1), 4),
        round(100 * (pi(0.1, 1) / halved(0.1, 1) - 1)),
    ]
    told = said("at $\\varepsilon=0.5$ it is # % (# and #)")
    assert told == [
        round(100 * (pi(0.5, 1) / halved(0.5, 1) - 1)),
        round(pi(0.5, 1), 4),
        round(halved(0.5, 1), 4),
    ]
    ratio = (1 - pi(0.1, 1) + pi(0.1, 1) * exp(0.5)) / (1 - pi(0.1, 1) + pi(0.1, 1) * exp(-0.5))
    assert log(ratio) == pytest.approx(0.1)
    kept = (e**0.1 - 1) / (e - 1)
    assert said("loses # where 0.1 is allowed") == [round(log(1 + kept * (2 * e**0.5 - 1)), 3)]


def test_errors_of_a_mean_of_who_is_kept():
    sampling = script("sampling")
    spec = specs.jorgensen(sampling.PEOPLE).spec(seed=1)
    query = accord.mean("x", bounds=(0, 1), missing="none")
    here = accord.plan(spec, query, "sample", t=1.0).rmse
    halved = sampling.error(spec, 1.0, sampling.HALVED)
    assert said("falls by # % only (# against #)") == [
        round(100 * (1 - here / halved)),
        round(here, 4),
        round(halved, 4),
    ]
    assert said("and `affine` (#) is better at any $t$") == [
        round(accord.plan(spec, query, "affine").rmse, 4)
    ]


def test_sensitivities():
    sensitivity = script("sensitivity")
    told = said("all pairs of points of a grid: #, # and # for")
    assert told == pytest.approx([sensitivity.farthest(d, steps) for d, steps in sensitivity.STEPS.items()])
    products, first, equal, ours, ours_products = sensitivity.scales(8).values()
    assert said("noise on $yx$ has the scale # (equal weights #, the program #), on products # (#, #)") == [
        round(ours, 1),
        equal,
        first,
        round(ours_products),
        equal,
        round(products),
    ]
    smaller = [
        [of[name] / of["equal weights: d(d + 3)/2"] for of in map(sensitivity.scales, sensitivity.COLUMNS)]
        for name in ("2d² + 4d, y·x", "2d² + 4d, x·x")
    ]
    told = said("noise on $yx$ is # to # times smaller than in that program, on products # to # times")
    assert told == [round(end(kind), 1) for kind in smaller for end in (min, max)]
    redone = redrawn("J-fig3c")
    (least,) = said("least squares #) M has")
    told = [least, *said("M has #, T #, S # and `affine` #.")]
    names = ("non private", "M", "T", "S", "affine")
    assert told == [round(redone["", name, "0.5"], 3) for name in names]


# ---- gaps, boxes, tuples, rounding -------------------------------------------------------------------------


def test_gaps():
    gap = script("gap")
    survey = list(gap.survey().values())
    told = said("differ by # of the width in mean age, # in household income and # in the share of women")
    assert told == [round(x, 3) for x in survey[:3]]
    population = populations.column(str(files("accord.data") / "people.parquet"), "income")
    spec = specs.jorgensen(gap.PEOPLE).spec(seed=1)
    apart = gap.gap_of(population, spec, 0.1)
    affine, held = gap.measured("affine", None, population, spec, 0.1)
    robust, robust_held = gap.measured("robust", apart, population, spec, 0.1)
    minimum, _ = gap.measured("minimum", apart, population, spec, 0.1)
    assert said("`affine` is off by # dollars, and its interval without a gap holds in # % of releases") == [
        round(affine),
        round(100 * held),
    ]
    assert said("`minimum` is off by #; `robust` with the right gap by #, and holds in # %") == [
        round(minimum),
        round(robust),
        round(100 * robust_held),
    ]


def test_a_box_of_twenty_means():
    """With a tenth of the runs: within a fifth."""
    errors, _ = script("boxes").measured(counts=(20,), runs=20)
    told = said(
        "(error about these very people, split over box): # for one mean, # for 2, # for 5 and for 10, # for 20,"
    )
    assert told[-1] == pytest.approx(errors["split"][0] / errors["box"][0], rel=0.2)


def test_regressions_are_those_of_the_page_of_mechanisms():
    page = (DOCS / "mechanisms.md").read_text(encoding="utf-8")
    table = page[page.index("| boxes are … times closer") :].split("\n\n")[0].splitlines()[2:]
    gains, kind = {}, ""
    for line in table:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        kind = name.partition(",")[0] if "," in name and not name.startswith("n =") else kind
        gains.setdefault(kind, []).extend(float(cell.split()[0]) for cell in cells)
    everything = [gain for each in gains.values() for gain in each]
    assert said("**Measured** over # settings") == [len(everything)]
    assert said("boxes are # to # times closer than a noise for each moment") == [
        min(everything),
        max(everything),
    ]
    told = said("# to # times with a category among the columns, # to # times for independent uniform ones")
    rough = [round(end(gains[kind]), 1) for kind in ("filing status", "uniform") for end in (min, max)]
    assert told == rough


def test_tuples():
    joint = script("joint")
    measured, predicted = joint.errors(joint.FEWER, joint.NINE)
    told = said("are off by # percentile points split and by # together (predicted # and #)")
    assert told == pytest.approx(
        [*(measured[kind][0] for kind in measured), *(predicted[kind][0] for kind in predicted)], abs=0.0006
    )
    assert said("of nine deciles of 20,000 people are # times as wide") == [round(joint.wider(20_000, 9), 2)]
    ends = joint.wider(1_000, 2), joint.wider(1_000_000, 19)
    assert said("and # to # times over 1,000 to 1,000,000 people") == [round(x, 1) for x in ends]
    least, most = said("Between # and # tuples are proposed")
    assert all(least - 0.05 < joint.tries(count) < most + 0.05 for count in (1, 3, 5))


def test_rounded_values():
    rounding = script("rounding")
    sql = "SELECT income FROM read_parquet($1) WHERE epsilon > 0 AND income IS NOT NULL"
    path = str(files("accord.data") / "people.parquet")
    incomes = rounding.duckdb.connect().execute(sql, [path]).fetchnumpy()["income"].astype(float)
    rounded = np.rint(incomes / 1000) * 1000
    told = said("is off by # percentile points without the prior and by # with it; of 1,000,")
    assert told == pytest.approx([rounding.error(rounded, 20_000, way) for way in (None, True)], abs=0.0006)


# ---- private levels, checks --------------------------------------------------------------------------------


def test_a_clip_that_follows_from_the_table_overspends():
    def charges(levels):
        distinct, people = np.unique(levels, return_counts=True)
        return np.minimum(levels, clip(distinct, people, 8.0))

    before, after = (charges(np.array([0.5] * strict + [10.0] * 10)) for strict in (1, 2))
    told = said("with one person at 0.5 and ten at 10, $\\tau=#$; if a second person at 0.5 comes, $\\tau=#$")
    assert told == [before.max(), after.max()]
    assert said("the mean move by # where 0.5 is allowed") == [
        after[0] + np.abs(after[2:] - before[1:]).sum()
    ]


def test_wrong_expectations():
    compared = script("sizes").compared
    few, most = said("wrong by a factor of ten costs # to # %")
    assert [few, most] == sorted(round(100 * (compared(3_000, off)[0] - 1)) for off in (0.1, 10))
    (told,) = said("by a hundred # %;")
    assert {round(100 * (compared(3_000, off)[0] - 1)) for off in (0.01, 100)} == {told}
    told = said("too large by ten or more (# and #; by a hundred # and #)")
    assert told == [round(x, 2) for off in (10, 100) for x in compared(300, off)]


def test_what_was_checked_is_what_the_other_pages_say():
    assert said("# bugs are planted in the library one by one, and # in whole programs") == [
        len(planted.PLANTED),
        len(planted_programs.PLANTED),
    ]
    audit = " ".join((DOCS / "audit.md").read_text(encoding="utf-8").split())
    assert said("of some # possible small changes") == said("There are # such changes.", audit)
    told = said("# were tried in the last round; # were noticed at once, and # survived that round")
    assert told == said("| together | # | # | # |", audit)
    reproduction = " ".join((DOCS / "reproduction.md").read_text(encoding="utf-8").split())
    out, of, not_out, unsure = said(
        "# of # came out when their figures were redrawn, # did not and # could not be told"
    )
    assert [of, out, not_out, unsure] == said(
        "Of # things that the papers say, # came out, # did not, and for # the runs are too few to tell",
        reproduction,
    )
