"""What all tests share."""

from hypothesis import settings

# A first example may compile a kernel, and machines are shared: no test asserts a speed.
settings.register_profile("portcullis", deadline=None)
settings.load_profile("portcullis")
