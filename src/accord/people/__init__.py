"""People: what a user holds (a table), who is in it, what level they have, and the exact integers read of them."""
