"""The report of a recording as one HTML page: `navsense report FILE -o report.html`.

    from navsense.report import write
    write("survey.mcap", "report.html", world="survey.sdf")

The page starts with warnings. Then it shows the track over the ground, the clocks, and each sensor with its ideal
readings. It is one file without scripts; figures are SVG with embedded PNG images.
"""

from navsense.report.page import write

__all__ = ["write"]
