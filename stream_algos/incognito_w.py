"""tIncognito_W: (ω,t)-closeness on sliding windows, one level of generalization for all rows of a window.

Idea. As tMondrian_W, with Incognito as the static algorithm. It loses most of the three; it is here to compare with.

Reference: J. Cao, thesis 2010, chapter 6; the window's part is in `window.py`.
"""

from __future__ import annotations

from static_algos import Incognito
from stream_algos.close_window import CloseWindowParameters
from stream_algos.engine import STREAM_ALGORITHMS
from stream_algos.mondrian_w import MondrianW


@STREAM_ALGORITHMS.register("incognito_w", CloseWindowParameters)
class IncognitoW(MondrianW):
    """(ω,t)-closeness: one level of generalization for all rows of a window, with what the window leaves of t."""

    static = Incognito
