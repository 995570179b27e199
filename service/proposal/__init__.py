"""A first policy for a table: roles, domains and hierarchies guessed from a sample, each guess with its reason."""

from service.proposal.proposal import Proposal, propose
from service.proposal.safe_harbor import STREAM_YEARS, SafeHarbor, read_areas

__all__ = ["STREAM_YEARS", "Proposal", "SafeHarbor", "propose", "read_areas"]
