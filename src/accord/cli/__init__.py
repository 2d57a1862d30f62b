"""The command line: parses, calls, prints.

stdout is the result, stderr progress and hints; exit 0 done, 1 refused, 2 usage.

    ask.py       plan, release, whatif, public, check-gap
    select.py    sql
    described.py init, run, report
    ledger.py    accord ledger …
    research.py  audit, reproduce, mechanisms
    service.py   serve, token …
    start.py     demo, version
    group.py     the command `accord`, to which these add theirs
    options.py   options that several commands share; completing.py: what a shell completes of them
    parsing.py   from options to tables and questions
    without_data.py  --levels in the place of a table
    printing.py  results, refusals, progress
    wording.py   refusals in the words of the options
"""

from accord.cli import ask, described, ledger, research, select, service, start  # their commands
from accord.cli.group import main
from accord.cli.options import STATISTICS

__all__ = ["STATISTICS", "ask", "described", "ledger", "main", "research", "select", "service", "start"]
