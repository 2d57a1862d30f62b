"""The names that SQL has at each of its stages.

A user's columns are named in one place only, the innermost SELECT of an engine's `source`, which gives them
out as c0, c1, … From there on every stage has names of its own that no other stage shares, so that no name
can mean two things:

    source      c0, c1, …                                           a row's columns, in their order
    placed      p_entry, p_key, p_place                             which of many keys a row has (keys.py)
    people      g_user, g_level, g_group, g_part, g_sum…, g_count…  one row a person (gathering.py)
    remaining   r_person, r_remaining                               what a ledger says remains (keeping.py)
    kept        k_level, k_chance, k_word                           who is kept at random (keeping.py)
    lent        lent_…                                              arrays beside the source
"""

USER, LEVEL, GROUP, PART = "g_user", "g_level", "g_group", "g_part"
SUM, COUNT = "g_sum{}", "g_count{}"
"""Of the k-th column that a person's rows are gathered from."""
ENTRY, KEY, PLACE = "p_entry", "p_key", "p_place"
PERSON, REMAINING = "r_person", "r_remaining"
LENT_PERSON, LENT_REMAINING = "lent_person", "lent_remaining"
LENT_WORD, LENT_LEVEL, LENT_CHANCE = "lent_word", "lent_level", "lent_chance"
ALL = "0"
"""The part of a row where there are no parts."""
