"""When somebody asked to stop a job with the best so far."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; in SQLite before what may be long, which it would read through to get at it."""
    before = op.get_bind().dialect.name == "sqlite"
    with op.batch_alter_table("jobs", recreate="always" if before else "never") as jobs:
        jobs.add_column(sa.Column("enough_at", sa.Double), insert_after="cancel_at" if before else None)


def downgrade() -> None:
    """Remove the column."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("enough_at")
