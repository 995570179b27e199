"""Jobs: a queue in a database, processes that work it off, and the files they work on."""

from service.jobs.database import open_database
from service.jobs.files import JobFiles, is_id, new_id
from service.jobs.job import Job, JobKind, JobView, State
from service.jobs.runner import JobRunner, RunnerLimits
from service.jobs.shape import GZIP, ending_of, unusable
from service.jobs.store import JobStore, LedgerEntry, ListedRelease, StoredPolicy
from service.jobs.work import EVIDENCE, RESULTS, SECRET

__all__ = [
    "EVIDENCE",
    "GZIP",
    "RESULTS",
    "SECRET",
    "Job",
    "JobFiles",
    "JobKind",
    "JobRunner",
    "JobStore",
    "JobView",
    "LedgerEntry",
    "ListedRelease",
    "RunnerLimits",
    "State",
    "StoredPolicy",
    "ending_of",
    "is_id",
    "new_id",
    "open_database",
    "unusable",
]
