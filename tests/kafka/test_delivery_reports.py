"""What librdkafka reports of a record is kept, also when a fatal error cuts the report short."""

import confluent_kafka as ck
import pytest

from service.kafka.confluent.producer import ConfluentProducer


class CutShort:
    def topic(self):
        raise SystemError("a fatal error has arrived meanwhile")


def test_a_failure_is_kept_even_if_its_record_cannot_be_asked_for_its_topic():
    producer = ConfluentProducer.__new__(ConfluentProducer)
    producer._failure = None
    error = ck.KafkaError(ck.KafkaError._FENCED)
    with pytest.raises(SystemError):
        producer._on_delivery(error, CutShort())
    assert producer._failure is error
