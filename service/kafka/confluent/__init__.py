"""The port on confluent-kafka (librdkafka): the fast one."""

from service.kafka.confluent.admin import ConfluentAdmin
from service.kafka.confluent.connection import Connection
from service.kafka.confluent.consumer import ConfluentConsumer
from service.kafka.confluent.producer import ConfluentProducer
from service.kafka.confluent.reader import ConfluentReader
from service.kafka.settings import KafkaSettings


class ConfluentClient:
    """Opens consumers, readers, producers and administrators on confluent-kafka."""

    name = "confluent-kafka"

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self.servers = settings.bootstrap_servers
        self.largest_request = settings.max_request_bytes

    def group_consumer(self, group: str, instance: str | None = None) -> ConfluentConsumer:
        """A member of a group; joins with `subscribe`."""
        return ConfluentConsumer(Connection(self._settings), group, instance)

    def reader(self, *, dirty: bool = False) -> ConfluentReader:
        """A reader of committed records; a dirty one sees open and aborted transactions too."""
        return ConfluentReader(Connection(self._settings), dirty=dirty)

    def producer(self, transactional_id: str) -> ConfluentProducer:
        """A producer; usable after `init_transactions`."""
        return ConfluentProducer(Connection(self._settings), transactional_id)

    def admin(self) -> ConfluentAdmin:
        """An administrator."""
        return ConfluentAdmin(Connection(self._settings))


__all__ = ["ConfluentClient"]
