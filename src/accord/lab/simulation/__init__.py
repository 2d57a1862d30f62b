"""How well mechanisms do on people who are drawn again and again.

Seeded, for research; never for releases.
"""
