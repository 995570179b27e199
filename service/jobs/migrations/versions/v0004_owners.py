"""Owners of data sets, and a clearer name for the moment at which a search was stopped."""

from typing import Literal

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; existing rows belong to the tokens that made them."""
    before = op.get_bind().dialect.name == "sqlite"
    recreate: Literal["always", "never"] = "always" if before else "never"  # in SQLite long columns must come last
    with op.batch_alter_table("jobs", recreate=recreate) as jobs:
        jobs.alter_column("enough_at", new_column_name="stop_search_at")
        owner = sa.Column("owner", sa.String(110), nullable=False, server_default="")
        jobs.add_column(owner, insert_after="kind" if before else None)
    op.execute("UPDATE jobs SET owner = 'token:' || token")
    with op.batch_alter_table("releases", recreate=recreate) as releases:
        owner = sa.Column("owner", sa.String(110), nullable=False, server_default="")
        releases.add_column(owner, insert_after="job" if before else None)
        releases.drop_index("releases_of_data_sets")
    op.execute("UPDATE releases SET owner = 'token:' || who")
    op.create_index("releases_of_data_sets", "releases", ["owner", "data_set", "at"])
    if not before:
        op.alter_column("jobs", "owner", server_default=None)
        op.alter_column("releases", "owner", server_default=None)


def downgrade() -> None:
    """Remove the columns."""
    op.drop_index("releases_of_data_sets", "releases")
    with op.batch_alter_table("releases") as releases:
        releases.drop_column("owner")
    op.create_index("releases_of_data_sets", "releases", ["data_set", "at"])
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("owner")
        jobs.alter_column("stop_search_at", new_column_name="enough_at")
