"""Draw docs/pictures/report.png: the top of the report of a recording of examples/auv_survey.sdf, as Chromium shows it.

python tools/report_picture.py [survey.npz]          a recording to take instead of making one
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from chromium import Browser, find

import navsense as ns
from navsense.report import write

ROOT = Path(__file__).resolve().parents[1]
WORLD = ROOT / "examples" / "auv_survey.sdf"
PICTURE = ROOT / "docs" / "pictures" / "report.png"

WIDTH, HEIGHT, SCALE = 1600, 1325, 0.8
"""Size of the window (pixels), and scale of the picture."""

LARGEST = 400_000
"""Maximum size of the picture (bytes)."""


def main() -> None:
    """Record the survey if no recording is given, write its report, and save a picture of it."""
    program = find()
    if program is None:
        sys.exit("needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "auv_survey.npz"
        if not recording.exists():
            ns.record(ns.load(WORLD), recording, seed=7)
        page = write(recording, Path(folder) / "report.html", world=str(WORLD))
        with Browser(program) as browser:
            shown = browser.open(page, WIDTH, HEIGHT).picture(SCALE)
    if len(shown) > LARGEST:
        sys.exit(f"the picture has {len(shown)} bytes; {LARGEST} are allowed")
    PICTURE.write_bytes(shown)
    print(f"wrote {PICTURE.relative_to(ROOT)}: {len(shown) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
