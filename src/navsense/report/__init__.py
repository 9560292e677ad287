"""The report of a recording or of a campaign as one HTML page: `navsense report FILE -o report.html`.

    from navsense.report import write
    write("survey.mcap", "report.html", world="survey.sdf")

The page starts with a summary and the warnings. Then it shows the tracks over the ground, the faults, the clocks, the
water, and each sensor with its ideal readings. It is one file without scripts. Figures are SVG with embedded PNG
images. `write_campaign` writes the page of a campaign.
"""

from navsense.report.campaign_page import write_campaign
from navsense.report.page import write

__all__ = ["write", "write_campaign"]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
