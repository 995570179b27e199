"""`python -m service` is `portcullis`."""

from service.cli import main

main()
