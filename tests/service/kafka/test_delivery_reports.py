"""What librdkafka reports of a record is kept, also when a fatal error cuts the report short."""

import confluent_kafka as ck

from service.kafka.confluent.producer import ConfluentProducer


class CutShort:
    """A record that cannot be asked for anything any more."""

    def __getattr__(self, name: str) -> None:
        raise SystemError("a fatal error has arrived meanwhile")


def test_a_failure_and_its_topic_are_kept_even_if_the_record_cannot_be_asked() -> None:
    producer = ConfluentProducer.__new__(ConfluentProducer)
    producer._failure, producer._failed_topic, producer._waiting = None, "", {"safe": 1}
    error = ck.KafkaError(ck.KafkaError._FENCED)
    producer._on_delivery("safe")(error, CutShort())
    assert (producer._failure, producer._failed_topic, producer._waiting) == (error, "safe", {"safe": 0})
