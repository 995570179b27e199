"""Policies: what data is, what must hold, and where it flows, in one YAML or JSON file."""

from service.policy.data import DataKind, data_kind, data_kinds, kind_of, policy_file, register
from service.policy.errors import PolicyError, PolicyProblem
from service.policy.file import DEFAULT, PolicyFile, StreamSection, TableSection
from service.policy.policy import Policy, load_policy, parse_policy
from service.policy.purposes import choose, open_to

__all__ = [
    "DEFAULT",
    "DataKind",
    "Policy",
    "PolicyError",
    "PolicyFile",
    "PolicyProblem",
    "StreamSection",
    "TableSection",
    "choose",
    "data_kind",
    "data_kinds",
    "kind_of",
    "load_policy",
    "open_to",
    "parse_policy",
    "policy_file",
    "register",
]
