"""A first policy for a table: roles, domains and hierarchies guessed from a sample, each guess with its reason."""

from service.proposal.proposal import Proposal, propose
from service.proposal.safe_harbor import SafeHarbor, read_areas

__all__ = ["Proposal", "SafeHarbor", "propose", "read_areas"]
