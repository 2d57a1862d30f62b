"""Every figure and table of the papers, redrawn: one file a paper, and what measures, checks, draws and
prints them.
"""
