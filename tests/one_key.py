"""Encoding under one key, so that persons of several calls can be compared."""

from functools import partial

import microdata
import microdata.events

KEY = microdata.PersonKey.random()

encode = partial(microdata.encode, person_key=KEY)
encode_events = partial(microdata.encode_events, person_key=KEY)
encode_each = partial(microdata.events._encode_each, person_key=KEY)
