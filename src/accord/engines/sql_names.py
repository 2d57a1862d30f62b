"""The names that SQL has at each of its stages.

A user's columns are named in one place only, the innermost SELECT of an engine's `source`, which gives them
out as c0, c1, … From there on every stage has names of its own that no other stage shares, so that no name
can mean two things:

    source         c0, c1, …                                           a row's columns, in their order
                   l_level                                             a row's level, if long to say
    register       e_user, e_level, e_fault, e_moment, e_latest        a consent register's entries
                   e_key                                               whose a row is, as the register has it
    keys           p_entry, p_key, p_place…, p_text…                   which of many keys a row has
                   q_place…                                            which of a few, as an engine groups it
    per_person     g_user, g_level, g_group, g_part, g_sum…, g_count…  one row a person
                   g_rows, g_member, g_place…                          or one for each of their categories
    categories     h_level, h_often…, h_several…, h_rank…              which of these a person is in
                   g_first                                             and 1 for one row of each person
    row_sampling   r_person, r_remaining                               what a ledger says remains
                   k_level, k_chance                                   who is kept at random
                   lent_…                                              arrays that the engine was lent
"""

ROW_LEVEL = "l_level"
USER, LEVEL, GROUP, PART = "g_user", "g_level", "g_group", "g_part"
SUM, COUNT = "g_sum{}", "g_count{}"
"""Of the k-th column that a person's rows are aggregated from."""
ENTRY_USER, ENTRY_LEVEL, ENTRY_FAULT = "e_user", "e_level", "e_fault"
ENTRY_MOMENT, ENTRY_LATEST, ROW_KEY = "e_moment", "e_latest", "e_key"
ROWS, MEMBER, CATEGORY = "g_rows", "g_member", "g_place{}"
SOME_LEVEL, OFTEN, SEVERAL, RANK, FIRST = "h_level", "h_often{}", "h_several{}", "h_rank{}", "g_first"
ENTRY, KEY, PLACE, KEY_TEXT = "p_entry", "p_key", "p_place", "p_text{}"
JOINED_CATEGORY, JOINED_KEY = "p_category{}", "p_place{}"
"""The place of the k-th column's category, or key, where it was joined."""
SHORT_PLACE = "q_place{}"
"""The key of the k-th column, in a type of the engine's own."""
PERSON, REMAINING = "r_person", "r_remaining"
KEPT_LEVEL, KEPT_CHANCE = "k_level", "k_chance"
LENT_PERSON, LENT_REMAINING = "lent_person", "lent_remaining"
LENT_WORD, LENT_LEVEL, LENT_CHANCE = "lent_word", "lent_level", "lent_chance"
ONLY_PART = "0"
"""The part of every row where a question has one part only."""
