"""What a worker holds open to read, and what it has learned of its topics."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import PersonKey
from microdata.encoding import encode_persons
from service.codec import Codec, codec_of, registry_of
from service.kafka import Client, FinalError, KafkaError, Partition, Reader, reach
from service.publishing.messages import MessageEncoder
from service.registry import Registry
from service.worker.asking import AskingCodec, asking
from service.worker.heard import HeardReader
from service.worker.keyed import KeyedDecoder
from service.worker.metrics import Metrics
from service.worker.restoring import Restorer
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
        self._opened = ExitStack()
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
        codec = self._codec()
        self.decoder = KeyedDecoder(codec, stream.keyed, self.topics.input_partitions)
        if not self._is_open:
            self._open_readers()
        partitions = self.topics.output_partitions
        self.messages = MessageEncoder(stream.schema, codec, stream.emit, partitions, show=stream.show)
        self.restorer = Restorer(
            stream,
            self.topics,
            self.consumer,
            self._reader,
            self._dirty_reader,
            codec,
            settings,
            self._keys,
            ending=self.ending,
        )

    def _codec(self) -> Codec:
        if self._registry is None:
            self._registry = registry_of(self._stream.route)
        kafka = self._asked
        if self._registry is not None:
            self._asked = f"the schema registry at {self._registry.name}"
        route = replace(self._stream.route, registry=self._registry)
        with asking():
            made = codec_of(route, self._settings.max_event_bytes, self.topics.message_bytes, self._person_key)
        self._asked = kafka
        return AskingCodec(made)

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
            self._opened, self._is_open = opened.pop_all(), True

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
