"""The acquisition stage: which candidate is worth an evaluation, learned from past proposals.

``contract`` holds the values that go in and out (Signals, Utility) and the protocol; ``history``
the buffer of past proposals; ``learned`` the network of the paper with its ``trust``; ``static``
the rules that learn nothing.
"""

from neuropareto.acquisition.contract import Acquisition, FittedAcquisition, Signals, Utility
from neuropareto.acquisition.history import (
    History,
    normalised,
    running_magnitude,
    window_statistics,
)
from neuropareto.acquisition.learned import Huber, LearnedAcquisition, OnlineTraining, Squared
from neuropareto.acquisition.static import StaticEHVI, SurrogateEstimate
from neuropareto.acquisition.trust import EarnedTrust, FullTrust
from neuropareto.archive import Gains

__all__ = [
    "Acquisition",
    "EarnedTrust",
    "FittedAcquisition",
    "FullTrust",
    "Gains",
    "History",
    "Huber",
    "LearnedAcquisition",
    "OnlineTraining",
    "Signals",
    "Squared",
    "StaticEHVI",
    "SurrogateEstimate",
    "Utility",
    "normalised",
    "running_magnitude",
    "window_statistics",
]
