"""The look of a report, on screen and on paper."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #f4f5f7; color: #1d2430;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em;
  overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0 0 .4rem; }
.lead { color: #4d5766; margin: 0 0 1rem; max-width: 48rem; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .9rem; }
.card, section { background: #fff; border: 1px solid #e3e6ea; border-radius: .7rem; }
.card { padding: .8rem 1.1rem; border-top: 3px solid #0072B2; }
.what { color: #4d5766; font-size: .82rem; }
.big { font-size: 1.75rem; font-weight: 650; font-variant-numeric: tabular-nums; line-height: 1.25; }
.small { color: #6b7480; font-size: .82rem; }
.flag { font-size: .8rem; font-weight: 600; background: #D55E00; color: #fff; border-radius: 1rem;
  padding: .15rem .7rem; vertical-align: middle; }
section { padding: 1.3rem 1.5rem; margin-top: 1.3rem; }
img { display: block; width: 100%; height: auto; margin: .4rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th { text-align: left; color: #4d5766; font-weight: 600; border-bottom: 2px solid #d5dae0; }
th, td { padding: .35rem .8rem .35rem 0; vertical-align: top; }
td { border-bottom: 1px solid #eceff2; }
.wide { overflow-x: auto; }
details { margin-top: .7rem; }
summary { cursor: pointer; color: #0072B2; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f7f8fa; border-radius: .4rem;
  padding: .8rem; font-size: .82rem; max-height: 24rem; overflow: auto; }
footer { color: #6b7480; font-size: .85rem; margin-top: 2rem; }
@media print {
  body { background: #fff; font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  section, .card { border-color: #ccc; break-inside: avoid; }
  details { display: none; }
}
"""
