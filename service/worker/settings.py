"""How a worker runs: one model for environment, file and flags."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.codec import MAX_EVENT_BYTES


class WorkerSettings(BaseSettings):
    """What operators tune. Environment: `PORTCULLIS_WORKER_…`."""

    model_config = SettingsConfigDict(env_prefix="PORTCULLIS_WORKER_", extra="forbid", frozen=True)

    commit_interval: float = Field(0.5, gt=0, le=60, description="seconds between two transactions, at most")
    commit_events: int = Field(50_000, ge=1, description="events that end a cycle before its time")
    poll_records: int = Field(20_000, ge=1, description="records taken from the client at once")
    max_event_bytes: int = Field(MAX_EVENT_BYTES, ge=1, description="larger records are refused unread")
    max_state_bytes: int = Field(8_388_608, ge=1_024, description="largest state record of one input partition")
    create_topics: bool = Field(default=False, description="create missing input, output and dead-letter topics")
    partitions: int = Field(1, ge=1, description="of the topics that are created")
    instance: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="stable name of this process among its group's: one that is started again under the same name "
        "takes its partitions back at once; with several processes each appends its number; random if left out",
    )
    on_stop: Literal["keep", "flush"] = Field(
        "keep", description="what a stop does with undecided events: leave them to the next owner, or release them"
    )
    accept_loss: bool = Field(
        default=False, description="count undecided events that are gone from the input as suppressed and go on"
    )
    rejected_share: float = Field(
        0.5,
        ge=0,
        le=1,
        description="share of a partition's recent records (at least 100) above which the worker reports in its "
        "log, /readyz, /status and metrics that it rejects them",
    )
    key_file: Path | None = Field(
        None,
        description="file with the keys that seal what streams remember of persons; `portcullis key new` makes one",
    )
    key_id: str | None = Field(
        None,
        description="which of its keys seals what is written; the newest if left out. All of them open what is there",
    )
    status_host: str = Field("127.0.0.1", description="where /status, /metrics, /healthz and /readyz listen")
    status_port: int = Field(9400, ge=0, le=65_535, description="of the first worker process; 0 takes any free port")
    status_names: tuple[str, ...] = Field(
        (), description="further names by which the status page may be asked for, as JSON; others are refused"
    )

    def of_process(self, number: int, processes: int) -> "WorkerSettings":
        """The settings of one of several processes: each has a status port and a name of its own."""
        own: dict[str, object] = {}
        if self.status_port:
            own["status_port"] = self.status_port + number
        if self.instance is not None and processes > 1:
            own["instance"] = f"{self.instance}-{number}"
        return self.model_copy(update=own)
