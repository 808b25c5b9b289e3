"""The benchmark: every table and figure of the paper by command, at any scale, resumably.

In flow order: :mod:`grid` (what to run), :mod:`cell` (one run), :mod:`claims`, :mod:`worker` and
:mod:`runner` (many runs), :mod:`records` (what they leave), :mod:`measures` and :mod:`statistics`
(what that says), :mod:`printed` (what the paper says), :mod:`tables`, :mod:`figures`, :mod:`score` and
:mod:`results` (both, side by side), :mod:`commands` (``neuropareto bench``).
"""
