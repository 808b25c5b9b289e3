"""One self-contained HTML page about a run: ``write_report(result, "report.html")``.

Front, hypervolume, parallel coordinates, which variables matter, how sure the model was, failures.
No script, no network, everything escaped; reads well on paper. Needs matplotlib.
"""

from __future__ import annotations

from neuropareto.report.page import write_report
from neuropareto.report.record import Record, record_of

__all__ = ["Record", "record_of", "write_report"]
