"""Every figure and table of the papers, redrawn; and what measures, checks, draws and prints them."""
