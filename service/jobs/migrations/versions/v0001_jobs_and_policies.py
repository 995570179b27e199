"""Jobs and stored policies."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("token", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("policy_name", sa.String(100), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("runner", sa.String(64)),
        sa.Column("lease_until", sa.Double),
        sa.Column("cancel_at", sa.Double),
        sa.Column("phase", sa.String(40)),
        sa.Column("phase_at", sa.Double),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("idempotency_key", sa.String(200)),
        sa.Column("digest", sa.String(64)),
        # Last what may be long: SQLite would read through it to get at what comes after.
        sa.Column("problem", sa.Text),
        sa.Column("inputs", sa.Text, nullable=False),
        sa.Column("report", sa.Text),
        sa.Column("policy", sa.Text, nullable=False),
        sa.UniqueConstraint("token", "idempotency_key", name="jobs_idempotency"),
    )
    op.create_index("jobs_queue", "jobs", ["state", "created_at"])
    op.create_index("jobs_newest", "jobs", ["created_at", "id"])
    op.create_table(
        "policies",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Remove both tables."""
    op.drop_table("policies")
    op.drop_table("jobs")
