"""What `static_quality` measures: the figures of the thesis' chapters 3 and 4, and the comparison on real Adult."""
