"""What a worker holds open to read, and what it has learned of its topics."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import PersonKey, SchemaError
from microdata.encoding import encode_persons
from service.codec import NO_SCHEMAS, Route, SchemaIds, StreamCodec, StreamDecoder, codec_of, decoder_of, registry_of
from service.kafka import Client, FinalError, KafkaError, Partition, Reader, reach
from service.publishing.messages import MessageEncoder
from service.registry import Registry, SchemaConflictError
from service.worker.asking import AskingDecoder, asking
from service.worker.heard import HeardReader
from service.worker.keyed import KeyedDecoder
from service.worker.metrics import Metrics
from service.worker.restoring import Restorer, last_state
from service.worker.sealing import load_keys
from service.worker.settings import WorkerSettings
from service.worker.stream import Stream
from service.worker.topics import TopicError, prepare

log = logging.getLogger(__name__)

_LOOKING = "looking at the topics"
_REACH_SECONDS = 1.5
"""How long a broker may take to accept a connection before anything is opened."""
_SLOW_SECONDS = 2.0
"""After so long without an answer it is said what is waited for."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 5.0
"""Between two looks at topics that are not there."""


class Connections:
    """Consumer and readers of one worker; with them `topics`, and the decoder, encoder and restorer that these need."""

    def __init__(self, stream: Stream, client: Client, settings: WorkerSettings, metrics: Metrics) -> None:
        self.client = client
        self._stream = stream
        self._settings = settings
        self._metrics = metrics
        # Rows that wait and rows that come must agree about persons, however often the codec is made anew meanwhile.
        self._keys = load_keys(settings.key_file, settings.key_id) if stream.remembers and settings.key_file else None
        self._person_key = PersonKey.random() if self._keys is None else self._keys.persons
        self.ending = False
        """Whether the stream is to be drained, and takes nothing any more."""
        self._registry: Registry | None = None
        self._asked = ""
        """Who is asked at the moment."""
        self._codec: StreamCodec | None = None
        self._decoders: dict[SchemaIds, StreamDecoder] = {}
        self._kept: tuple[SchemaIds, str] | None = None
        """Schemas to go on with although the registry has newer ones, and why."""
        self.has_newer_schema = False
        """Whether a record has shown that the registry has newer schemas than those that are read by."""
        self._opened = ExitStack()
        self._has_readers = False
        self._is_open = False

    def wait(self, stop: threading.Event) -> bool:
        """Wait until brokers and topics are there, for as long as that takes; False where `stop` came before."""
        said, pause = "", _FIRST_PAUSE
        while not (self._is_open or stop.is_set()):
            try:
                self.open()
            except FinalError:
                raise
            except (KafkaError, TopicError) as error:
                said = self._told_once(error, said)
                stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        self._metrics.worked(_LOOKING)
        return self._is_open

    def open(self) -> None:
        """Look at the topics and open what reads; nothing is opened before somebody listens."""
        self._asked = f"Kafka at {self.client.servers}"
        with self._told_when_slow():
            reach(self.client.servers, _REACH_SECONDS)
            self.look_at_topics()

    def look_at_topics(self) -> None:
        """Check the topics, and learn from them what decoding, encoding and restoring need."""
        stream, settings = self._stream, self._settings
        with closing(self.client.admin()) as admin:
            self.topics = prepare(admin, stream, settings, self.client.largest_request)
        if not self._has_readers:
            self._open_readers()
        self._codec = codec = self._new_codec()
        self.has_newer_schema = False
        decoder = AskingDecoder(codec, self._note_newer_schema)
        self.decoder = KeyedDecoder(decoder, stream.keyed, self.topics.input_partitions)
        partitions = self.topics.output_partitions
        self.messages = MessageEncoder(stream.schema, codec, stream.emit, partitions, show=stream.show)
        self.restorer = Restorer(
            stream,
            self.topics,
            self.consumer,
            self._reader,
            self._dirty_reader,
            codec,
            self._decoder_by,
            settings,
            self._keys,
            ending=self.ending,
        )
        self._is_open = True

    def keep_schemas(self, schemas: SchemaIds, error: Exception) -> bool:
        """Read and write by these schemas from now on; False where others are kept already."""
        if self._kept is not None:
            return False
        self._kept = schemas, _behind(self._stream, schemas, error)
        self.has_newer_schema = True
        log.warning("%s", self._kept[1])
        return True

    def _note_newer_schema(self) -> None:
        self.has_newer_schema = True

    def _new_codec(self) -> StreamCodec:
        """Make the codec by the newest schemas; where the policy does not fit them, by those that the stream has used.

        So an incompatible schema does not prevent draining a stream, and no pending event is stuck.
        """
        if self._registry is None:
            self._registry = registry_of(self._stream.route)
        kafka = self._asked
        if self._registry is not None:
            self._asked = f"the schema registry at {self._registry.name}"
        with asking():
            try:
                schemas, reason = self._kept or (NO_SCHEMAS, None)
                made = self._codec_by(schemas)
                self._metrics.behind(reason)
            except (SchemaError, SchemaConflictError) as error:
                made = self._codec_by_used(error)
        self._asked = kafka
        return made

    def _codec_by_used(self, error: SchemaError | SchemaConflictError) -> StreamCodec:
        used = [] if self._codec is None else [self._codec.schemas]
        for schemas in used or self._recorded_schemas():
            with suppress(SchemaError, SchemaConflictError):
                made = self._codec_by(schemas)
                reason = _behind(self._stream, schemas, error)
                log.warning("%s", reason)
                self._metrics.behind(reason)
                return made
        raise error

    def _recorded_schemas(self) -> list[SchemaIds]:
        """The schemas that the states of this stream name, the newest first."""
        found = []
        for number in range(self.topics.input_partitions):
            state = last_state(self._reader, self._dirty_reader, Partition(self._stream.state_topic, number))
            if state is not None and state.engine is not None and state.origin.fingerprint == self._stream.fingerprint:
                found += [one.schemas for one in state.schemas[-1:]]
        return sorted(set(found), key=lambda one: (one.input or 0, one.key or 0, one.output or 0), reverse=True)

    def _route(self, schemas: SchemaIds, *, follow: bool) -> Route:
        return replace(self._stream.route, registry=self._registry, schemas=schemas, follow=follow)

    def _codec_by(self, schemas: SchemaIds) -> StreamCodec:
        limits = self._settings.max_event_bytes, self.topics.message_bytes
        return codec_of(self._route(schemas, follow=True), *limits, self._person_key)

    def _decoder_by(self, schemas: SchemaIds) -> StreamDecoder:
        """Return what reads events again as they were read by these schemas."""
        if schemas not in self._decoders:
            limits = self._settings.max_event_bytes, self.topics.message_bytes
            with asking():
                route = self._route(schemas, follow=False)
                self._decoders[schemas] = decoder_of(route, *limits, self._person_key)
        return self._decoders[schemas]

    def tags_of(self, persons: Sequence[str]) -> NDArray[np.int64]:
        """How persons of these names are known here: both codes of each."""
        keys = self._person_key, self._person_key.second or self._person_key
        return np.stack([encode_persons(key, pa.array(persons, pa.string()))[0] for key in keys], axis=1)

    def close(self) -> None:
        """Let go of all of them."""
        self._opened.close()

    def _open_readers(self) -> None:
        with ExitStack() as opened:
            self.consumer = opened.enter_context(
                closing(self.client.group_consumer(self._stream.group, self._settings.instance))
            )
            self._reader = opened.enter_context(closing(self._heard(self.client.reader())))
            self._dirty_reader = opened.enter_context(closing(self.client.reader(dirty=True)))
            self._opened, self._has_readers = opened.pop_all(), True

    def _heard(self, reader: Reader) -> HeardReader:
        def heard(partition: Partition, share: float) -> None:
            self._metrics.restoring(f"reading {partition.topic}/{partition.number} again, {100 * share:.0f} %")

        return HeardReader(reader, heard)

    def _told_once(self, error: KafkaError | TopicError, said: str) -> str:
        """Say what is waited for unless it was said just before; what is said now."""
        reason = str(error)
        self._metrics.waits(reason)
        if isinstance(error, KafkaError):
            self._metrics.failed(_LOOKING, error.code, reason)
        if reason != said:
            log.warning("%s waits: %s", self._stream.name, reason)
        return reason

    @contextmanager
    def _told_when_slow(self) -> Iterator[None]:
        """Say what is waited for where somebody takes their time; the clients do so after half a minute."""

        def tell() -> None:
            asked = self._asked
            self._metrics.waits(f"{asked} does not answer")
            log.warning("%s waits for an answer of %s", self._stream.name, asked)

        timer = threading.Timer(_SLOW_SECONDS, tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _behind(stream: Stream, schemas: SchemaIds, error: Exception) -> str:
    """Say why a stream does not use the newest schemas, and what to do about it."""
    numbers = [f"{role} {number}" for role, number in msgspec.structs.asdict(schemas).items() if number is not None]
    return (
        f"stream {stream.name!r} goes on with the schemas that it has used so far (ids: {', '.join(numbers)}), because "
        f"its policy does not fit the newest ones: {error}. To take over the change, write a new policy that fits (for "
        "a renamed field with stream.format.input.aliases, for another type with another output or output subject), "
        "stop the workers, then run `portcullis drain OLD_POLICY` and `portcullis run NEW_POLICY`"
    )
