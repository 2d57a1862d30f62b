"""The service: analysts ask, and never hold the data.

    settings.py   [service] of accord.toml
    asking.py     what a request may say, and the question that it is
    office.py     the tables, who may ask what of them, and what was asked; all rules are here
    scans.py      two requests at a time, in the order in which they came, answered on a schedule
    guard.py      hosts, sizes and times of requests, sign-in, headers
    api.py        the routes for programs, app.py all of it as one application
    demo.py       an office with bundled data

docs/service.md says what is promised, and against whom.
"""
