"""The command line: parses, calls, prints.

stdout is the result, stderr progress and hints; exit 0 done, 1 refused, 2 usage. One file a group of
commands.
"""

from accord.cli import ask, ledger, research, start  # their commands
from accord.cli.group import main
from accord.cli.options import STATISTICS

__all__ = ["STATISTICS", "ask", "ledger", "main", "research", "start"]
