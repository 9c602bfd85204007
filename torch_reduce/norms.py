"""Norms over lists of tensors, and what gradient clipping makes of them."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable, Sequence

import torch

_total_norm = torch.ops.gpureduce.total_norm
_clip_grads = torch.ops.gpureduce.clip_grads_
_KERNEL_NORMS = (1.0, 2.0, float("inf"))


def total_norm(tensors: Sequence[torch.Tensor], ord: float = 2.0, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """The norm of all elements of several tensors, as if they were one vector.

    Does what :func:`torch.nn.utils.get_total_norm` does, in one launch for up to 2,048 CUDA tensors, and is
    differentiable. Squares and magnitudes are added in float64, so the norm overflows or underflows only where the
    result itself does. The result has the same bits on the CPU and on any GPU; tensors without gaps are read in the
    order of their memory.

    Args:
        tensors: dense tensors of floating point or complex types, of any shapes and strides.
        ord: 1, 2, infinity, or any other order of :func:`torch.linalg.vector_norm`, which take several steps.
        out: takes the result, whose dtype and device it has; there is no gradient then.

    Returns:
        A 0-d tensor on the device of the first tensor, of the real type that the tensors' types promote to. As for
        torch, the norm of float16 tensors is a float16. Without tensors a float32 zero on the CPU.

    Raises:
        RuntimeError: a tensor is of an integer type, or ord is infinity and there is no element.

    Different from torch: with ord 0 all nonzero elements are counted, not the tensors that have some; with infinity,
    some tensors may be empty.

    Example:
        >>> torch_reduce.total_norm([torch.ones(3), torch.ones(2, 3)])
        tensor(3.)
    """
    result: torch.Tensor = _total_norm(tensors, ord) if out is None else _total_norm(tensors, ord, out=out)
    return result


def clip_grad_norm_(
    parameters: torch.Tensor | Iterable[torch.Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    """Scales the gradients of parameters in place, so that their total norm is at most max_norm.

    A drop-in for :func:`torch.nn.utils.clip_grad_norm_`, with its arguments, result and errors. On CUDA it takes one
    launch for the norm of up to 2,048 gradients of one type and one for the multiplication, which reads and writes
    nothing where no gradient has to change; nothing waits for the device unless error_if_nonfinite is set. Orders other
    than 1, 2 and infinity, tensor subclasses (DTensor), other devices and layouts are torch's own function's work.

    Args:
        parameters: a tensor or tensors whose .grad is clipped; those without are left out. Each gradient counts once.
        max_norm: the largest norm the gradients may have.
        norm_type: the order of the norm, see :func:`total_norm`.
        error_if_nonfinite: whether to raise where the total norm is infinite or NaN.
        foreach: torch's choice of kernels, where torch does the work.

    Returns:
        The total norm before clipping, as :func:`total_norm` gives it.

    Raises:
        RuntimeError: the total norm is not finite and error_if_nonfinite is set.

    Different from torch: the factor comes from the norm in float64, not from the one rounded to the gradients' type.
    """
    if isinstance(parameters, torch.Tensor):
        parameters = [parameters]
    else:
        is_generator = isinstance(parameters, types.GeneratorType)
        parameters = list(parameters)
        if is_generator and not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    gradients = [gradient for p in parameters if (gradient := p.grad) is not None]
    norm_type = float(norm_type)
    if norm_type in _KERNEL_NORMS and set(map(type, gradients)) <= {torch.Tensor}:
        with torch.no_grad():
            try:
                if error_if_nonfinite:
                    _raise_if_nonfinite(_total_norm(gradients, norm_type), norm_type)
                result: torch.Tensor = _clip_grads(gradients, float(max_norm), norm_type)
                return result
            except NotImplementedError:  # another device or layout
                pass
    return torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def _raise_if_nonfinite(norm: torch.Tensor, norm_type: float) -> None:
    if not torch.isfinite(norm):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
