"""Reductions for PyTorch at memory speed, with the same bits on every device, batch and run.

Importing this package registers the operators, ``torch.ops.gpureduce.*``; their documented forms are below.
"""

try:
    import torch

    from ._load import call_directly, load_library

    load_library()
    for name in ("sum", "mean", "nansum", "nanmean", "sumsq"):
        call_directly(getattr(torch.ops.gpureduce, name))

    from . import _vmap, _vmap_many, ladder  # noqa: F401  (register with the operators, which have to be there first)
    from .additive import mean, nanmean, nansum, prod, sumsq
    from .dots import dot, vecdot
    from .exponentials import logsumexp, softmax_stats
    from .extremes import amax, amin, aminmax, argmax, argmin, max, min
    from .moments import norm, std, std_mean, var, var_mean
    from .norms import clip_grad_norm_, total_norm
    from .ops import explain, sum
    from .truth import all, any, count_nonzero
except (ImportError, OSError, AttributeError, RuntimeError) as error:
    from .doctor import on_failed_import

    on_failed_import(error)  # python -m torch_reduce doctor has to run where nothing else here can
    raise

del torch, name

__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "clip_grad_norm_",
    "count_nonzero",
    "dot",
    "explain",
    "logsumexp",
    "max",
    "mean",
    "min",
    "nanmean",
    "nansum",
    "norm",
    "prod",
    "softmax_stats",
    "std",
    "std_mean",
    "sum",
    "sumsq",
    "total_norm",
    "var",
    "var_mean",
    "vecdot",
]
