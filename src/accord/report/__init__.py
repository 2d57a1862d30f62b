"""What people read: tables of text and figures.

tables.py          tables of text, and numbers as people read them
plans.py           plans, the levels behind them, and mechanisms
releases.py        answers, and what they cost whom
ledgers.py         budgets, history and verdicts
figures.py         plans and accounts as pictures
answer_figures.py  answers as pictures
html.py            all of it in notebooks, with small pictures of svg.py
demo.py            the whole story on bundled data
"""
