"""Reductions for PyTorch at memory speed, with the same bits on every device, batch and run.

Importing this package registers the operators, ``torch.ops.gpureduce.*``; their documented forms are below.
"""

import torch

from ._load import call_directly, load_library

load_library()
call_directly(torch.ops.gpureduce.sum)

from . import _vmap, _vmap_many  # noqa: E402, F401  (register with the operators, which have to be there first)
from .norms import clip_grad_norm_, total_norm  # noqa: E402
from .ops import explain, sum  # noqa: E402

del torch

__all__ = ["clip_grad_norm_", "explain", "sum", "total_norm"]
