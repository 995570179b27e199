"""Pages as people read them."""

import re


def text_without_isolation(page: str) -> str:
    """A page or sentence without the marks that keep names from reordering the text around them."""
    return re.sub("</?bdi>|[\u2068\u2069]", "", page)
