"""Campaigns: many runs of a world, with sweeps over its parameters, on local processes or on a Dask cluster.

`navsense.campaign(...)` computes a campaign. `latin_hypercube` returns the points of a sweep. `Campaign` is what is
computed, `CampaignResult` the rows of its runs. `read_experiment` reads an experiment file, and `compute_campaign`
computes its campaign. `ReportColumns` selects what the report shows.
"""

from navsense.campaigns.campaign import Campaign
from navsense.campaigns.computation import compute_campaign
from navsense.campaigns.experiment_file import read_experiment
from navsense.campaigns.report_columns import ReportColumns
from navsense.campaigns.result import CampaignResult
from navsense.campaigns.sweep import Point, latin_hypercube

__all__ = [
    "Campaign",
    "CampaignResult",
    "Point",
    "ReportColumns",
    "compute_campaign",
    "latin_hypercube",
    "read_experiment",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
