"""Releases of data sets."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "releases",
        sa.Column("job", sa.String(64), primary_key=True),
        sa.Column("data_set", sa.String(100), nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("release", sa.Text, nullable=False),
    )
    op.create_index("releases_of_data_sets", "releases", ["data_set", "at"])


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("releases")
