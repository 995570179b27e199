"""How it is offered: settings, Kafka worker, HTTP API, jobs, metrics, console, command line."""
