"""Policies: what data is, what must hold, and where it flows, in one YAML or JSON file."""

from service.policy.errors import PolicyError, Problem
from service.policy.file import PolicyFile, StreamSection, TableSection
from service.policy.policy import Policy, load_policy, parse_policy

__all__ = [
    "Policy",
    "PolicyError",
    "PolicyFile",
    "Problem",
    "StreamSection",
    "TableSection",
    "load_policy",
    "parse_policy",
]
