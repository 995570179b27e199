"""What must hold: privacy models, the audit, attacks and risk."""

from privacy.model import Groups, Histogram, Model

__all__ = ["Groups", "Histogram", "Model"]
