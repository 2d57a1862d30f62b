"""Draws plan.png, the first picture of the README: the plan of a mean of the bundled people's incomes."""

from importlib.resources import files
from pathlib import Path

import accord


def main() -> None:
    people = accord.table(str(files("accord.data") / "people.parquet"), epsilon="epsilon")
    plan = people.plan(accord.mean("income", bounds=(0, 200_000), missing="none"))
    plan.plot(Path(__file__).with_name("plan.png"))


if __name__ == "__main__":
    main()
