"""What alembic runs: migrations on the connection that `service.jobs.database.migrate` hands over."""

from alembic import context

from service.jobs.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
