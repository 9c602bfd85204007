"""Inputs whose sum tells whether every element was read once, and the check that a kernel reads them so.

A kernel that reads element i m_i times gives the sum of m_i x_i. With data that are all ones only the total of the m_i
shows, so that a kernel which reads every fourth element four times passes. Two data sets show more, both without any
tolerance, because no addition rounds, whatever the order:

weights: random integers of both signs, none of them zero, with |x_i| <= w. One element skipped or doubled always shows.
    Any other wrong pattern m passes for one value of x_i at most, where m_i is wrong and the others are given: with a
    probability of 1 / 2w a draw at most (the argument of Freivalds 1977), and draws are repeated. The sums are exact:
    up to 2^24 / w elements any partial sum is below 2^24, and beyond that it is a random walk, of which w leaves eight
    standard deviations below 2^24. An order that does not look at the data cannot make it go further.
marks: zeros but for 24 elements, at the ends, around the edges of blocks and at random, which are 1, 2, 4, .., 2^23.
    The digits of the sum say which of them were read; one that is read twice carries into the next.
"""

import math
from collections.abc import Callable

import torch

EXACT = 1 << 24  # integers up to it are floats
MARKS = 24
EDGES = (256, 1024, 4096, 16384)  # elements of the blocks of some rung


def largest_weight(n):
    """w for n elements: at most 255, and eight standard deviations of the sum, w sqrt(n / 3), are at most 2^24."""
    return max(1, min(255, int(EXACT / (8 * math.sqrt(n / 3)))))


def weights(n, seed=0, device="cpu"):
    """n weights, made piece by piece to need little memory beside them."""
    generator = torch.Generator(device).manual_seed(seed)
    w = largest_weight(max(n, 1))
    x = torch.empty(n, device=device)
    for piece in x.split(1 << 28):
        drawn = torch.randint(-w, w, piece.shape, generator=generator, device=device, dtype=torch.int16)
        piece.copy_(drawn.add_(drawn >= 0))
    return x


def marks(n, seed=0, device="cpu"):
    """n elements with up to 24 marks."""
    generator = torch.Generator().manual_seed(seed)
    edges = [at for edge in EDGES for at in (edge - 1, edge, n // edge * edge - 1, n // edge * edge)]
    drawn = torch.randint(0, max(n, 1), (MARKS,), generator=generator).tolist()
    places = list(dict.fromkeys(at for at in (0, 1, 2, 3, n - 1, n - 2, n - 3, n - 4) if 0 <= at < n))
    some = torch.randperm(len(edges), generator=generator)[:8].tolist()
    places += [at for at in dict.fromkeys(edges[i] for i in some) if 0 <= at < n and at not in places]
    places += [at for at in dict.fromkeys(drawn) if at not in places]
    places = torch.tensor(places[:MARKS], dtype=torch.int64)
    order = torch.randperm(len(places), generator=generator)
    x = torch.zeros(n, device=device)
    x[places.to(device)] = torch.exp2(order.float()).to(device)
    return x


def exact_sum(x):
    """The sum of integers in float32, as a Python number."""
    return sum(int(piece.to(torch.int64).sum()) for piece in x.split(1 << 28))


DATA: dict[str, Callable[..., torch.Tensor]] = {"weights": weights, "marks": marks}


def faults(function, n, offsets=(0,), seeds=(0, 1), device="cpu"):
    """What is wrong with a sum of n elements that begin `offsets` floats behind an aligned address; [] for nothing."""
    found = []
    for name, make in DATA.items():
        for seed in seeds:
            base = make(n + max(offsets), seed, device)
            for offset in offsets:
                x = base[offset : offset + n]
                got, want = float(function(x)), exact_sum(x)
                if got != want:
                    found.append(f"{name} {seed}, n = {n}, offset {offset}: {got:.9g}, expected {want}")
    return found
