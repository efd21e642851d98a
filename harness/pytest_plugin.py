"""The pytest door: scenario files are tests, and the fixture `drill` runs one from Python."""

from __future__ import annotations
