"""Migrations of the service's database, run by alembic when the service starts."""
