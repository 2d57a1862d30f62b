"""`python -m accord.cli`."""

from accord.cli import main

main()
