"""A recording as one page that a person looks at first: `navsense report FILE -o report.html`.

    from navsense.report import write
    write("survey.mcap", "report.html", world="survey.sdf")

Warnings stand on top; then the track over the ground, the clocks, and each sensor against its truth. The page is one
file without scripts: figures are SVG, pictures PNG within it.
"""

from navsense.report.page import write

__all__ = ["write"]
