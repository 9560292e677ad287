"""`python -m navsense` is `navsense`."""

from __future__ import annotations

from navsense.cli import main

if __name__ == "__main__":
    main()
