"""Benchmarks and load, soak and fault runs; each prints a table and can write JSON. See `harness` and `generators`."""
