"""What pages of the documentation show, for tests that run it."""

import re


def blocks(language, text):
    """The blocks of a language on a page, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
