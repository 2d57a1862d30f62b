"""How long reading may take: for front ends, which know no engine."""

from accord.engines.engine import limited

__all__ = ["limited"]
