"""What the quality benchmarks share, and the figures of the thesis' chapters 3 and 4 that `static_quality` measures."""
