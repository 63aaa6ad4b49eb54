"""What an autopilot works with while it holds the lease of its job."""

from flink_client.rest.client import FlinkRest
from pipelines.control.actions.deployment import OpenApi
from pipelines.control.actions.hands import Hands
from pipelines.control.actions.intents import Intent, IntentJournal
from pipelines.control.files import AutopilotFiles
from pipelines.control.keeping.diary import Diary
from pipelines.control.keeping.lease import Lease
from pipelines.control.keeping.state import StateKeeper
from pipelines.control.request import AutopilotRequest, Clocks
from pipelines.store.workspace import Workspace


class Tenure:
    """The lease, and all that only its holder may write: decisions, state and actions."""

    def __init__(
        self,
        workspace: Workspace,
        request: AutopilotRequest,
        rest: FlinkRest,
        lease: Lease,
        clocks: Clocks,
        *,
        every_s: float,
        connect: OpenApi,
    ) -> None:
        """Begin where the former holder ended.

        Args:
            every_s: between two rounds.
            connect: to Kubernetes, where the job has a FlinkDeployment.
        """
        files, journal = AutopilotFiles(workspace, request.job), IntentJournal(workspace, request.job)
        self.files = files
        self.lease = lease
        self.diary = Diary(files, max(files.newest_number(), journal.newest_number()) + 1)
        self.state = StateKeeper(files, request, lease, clocks, every_s)
        self.hands = Hands(rest, request, journal, lease, clocks, self.beat, connect)
        self.open = journal.open_intent()
        """An action that is not brought to its end."""
        self.acted: Intent | None = None
        """The action of this round."""

    def beat(self) -> None:
        """While an action is under way."""
        self.lease.renew()
        self.state.beat()

    def has_record(self, intent: Intent) -> bool:
        """Whether the decision that an action belongs to is stored with how it ended."""
        since = self.files.decisions(since=intent.intended_at)
        return any(d.rescale is not None and d.rescale.intent == intent.number for d in since)

    def ended(self) -> None:
        """The action of this round is stored with its decision."""
        if self.acted is not None:
            self.end(self.acted)

    def end(self, intent: Intent) -> None:
        """Nothing of the action is left to be done."""
        self.hands.end(intent)
        self.acted = self.open = None
