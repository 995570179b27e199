"""The port on kafka-python: pure Python, always there."""

from service.kafka.kafka_python.admin import KafkaPythonAdmin
from service.kafka.kafka_python.connection import require_codecs
from service.kafka.kafka_python.consumer import KafkaPythonConsumer
from service.kafka.kafka_python.producer import KafkaPythonProducer
from service.kafka.kafka_python.reader import KafkaPythonReader
from service.kafka.settings import KafkaSettings


class KafkaPythonClient:
    """Opens consumers, readers, producers and administrators on kafka-python."""

    name = "kafka-python"

    def __init__(self, settings: KafkaSettings) -> None:
        require_codecs()
        self._settings = settings
        self.servers = settings.bootstrap_servers
        self.largest_request = settings.max_request_bytes

    def group_consumer(self, group: str) -> KafkaPythonConsumer:
        """A member of a group; joins with `subscribe`."""
        return KafkaPythonConsumer(self._settings, group)

    def reader(self, *, dirty: bool = False) -> KafkaPythonReader:
        """A reader of committed records; a dirty one sees open and aborted transactions too."""
        return KafkaPythonReader(self._settings, dirty=dirty)

    def producer(self, transactional_id: str) -> KafkaPythonProducer:
        """A producer; usable after `init_transactions`."""
        return KafkaPythonProducer(self._settings, transactional_id)

    def admin(self) -> KafkaPythonAdmin:
        """An administrator."""
        return KafkaPythonAdmin(self._settings)


__all__ = ["KafkaPythonClient"]
