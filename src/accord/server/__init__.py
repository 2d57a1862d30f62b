"""The service: analysts ask, and never hold the data.

    settings.py   [service] of accord.toml
    asking.py     what a request may say, and the question that it is
    office.py     who may ask what: all rules are here
    desks.py      the tables that are asked about, what everybody may know of them, and plans
    carrying.py   people are charged, values are read, the answer is booked; or why not
    scans.py      two requests at a time, in the order in which they came, answered on a schedule
    refusals.py   what is refused, and in which words
    guard.py      hosts, sizes and times of requests, sign-in, headers
    api.py        the routes for programs, app.py all of it as one application
    client.py     the same tables, for a program elsewhere: calling.py, sending.py, receiving.py
    listening.py  how uvicorn is set up; heads.py: the head of the chain is written elsewhere
    access.py     who looks at the pages: sessions, cookies, forms
    pages/        what people see; templates/ and static/
    demo.py       an office with bundled data

docs/service.md says what is promised, and against whom.
"""
