"""The Kafka worker: raw events in, checked clusters out, each event at most once."""
