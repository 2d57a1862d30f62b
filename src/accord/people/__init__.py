"""People: what a user holds (a table), who is in it, their levels, and the exact integers read of them."""
