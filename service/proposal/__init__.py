"""A first policy for a table: roles, domains and hierarchies guessed from a sample, each guess with its reason."""

from service.proposal.proposal import Proposal, propose

__all__ = ["Proposal", "propose"]
