from __future__ import annotations

import subprocess
import sys

import torch
from torch import Tensor

from neuropareto.adam import AdamW


def parameters() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"W": (3, 4), "b": (4,)}
    return {
        name: torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for name, shape in shapes.items()
    }


def loss(P: dict[str, Tensor], t: int) -> Tensor:
    x = torch.linspace(-1.0, 1.0 + 0.1 * t, 3, dtype=torch.float64)
    return (torch.tanh(x @ P["W"]) + P["b"]).square().sum()


def test_steps_are_those_of_pytorch() -> None:
    ours, theirs = parameters(), parameters()
    adam = AdamW(ours, 0.05, {"W": 0.3})
    groups = [
        {"params": [theirs["W"]], "weight_decay": 0.3},
        {"params": [theirs["b"]], "weight_decay": 0.0},
    ]
    reference = torch.optim.AdamW(groups, lr=0.05)
    for t in range(30):
        adam.step(loss(ours, t))
        reference.zero_grad()
        loss(theirs, t).backward()  # type: ignore[no-untyped-call]
        reference.step()
    for name, value in theirs.items():
        assert torch.allclose(ours[name], value, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(ours["W"], parameters()["W"], atol=0.1)


def test_a_round_does_not_import_pytorchs_compiler() -> None:
    code = """
import sys, numpy as np
from neuropareto import NeuroPareto, minimize, problem
minimize(problem("zdt1", d=3), budget=14, n_initial=10, algorithm=NeuroPareto(), seed=0)
print("torch._dynamo" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("False")
