"""From a kernel's counters to what bounds it, in one sentence with what to try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from . import _ncu

Bound = Literal["memory", "compute", "latency"]

# The rules of Nsight Compute's section "GPU Speed Of Light Throughput": where all units are below 60 % of their peak,
# that typically indicates latency issues; one above 80 % is what work has to be moved away from.
SATURATED, LATENCY = 80.0, 60.0
GOOD_WARP, GOOD_SECTOR = 24.0, 24.0  # of 32 lanes an instruction, of 32 bytes a sector
CONFLICTS = 0.2  # of the passes through shared memory
MORE_THAN_ITS_INPUT = 1.1

REQUIRED = {
    "us": "gpu__time_duration.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory_percent": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "read_mb": "dram__bytes_read.sum",
    "written_mb": "dram__bytes_write.sum",
}
MORE = {
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "shared_passes": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "bytes_per_sector": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
    "lanes_per_instruction": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    "registers": "launch__registers_per_thread",
    "blocks": "launch__grid_size",
    "threads": "launch__block_size",
    "waves": "launch__waves_per_multiprocessor",
}


@dataclass(frozen=True)
class Kernel:
    """A kernel's counters by name (those of REQUIRED and MORE that the GPU has), and what its warps wait for."""

    name: str
    counters: dict[str, float]
    waits: tuple[tuple[str, float], ...] = ()  # reason and cycles an instruction, the longest first

    @classmethod
    def of(cls, units: _ncu.Row, row: _ncu.Row) -> Kernel:
        named = {name: _ncu.value(units, row, metric) for name, metric in (REQUIRED | MORE).items()}
        counters = {name: number for name, number in named.items() if number is not None}
        return cls(_ncu.kernel_name(row["Kernel Name"]), counters, tuple(_ncu.waits(row)[:3]))

    def get(self, name: str, otherwise: float = 0.0) -> float:
        return self.counters.get(name, otherwise)

    @property
    def waits_for(self) -> str:
        return self.waits[0][0] if self.waits else ""


@dataclass(frozen=True)
class Judgement:
    bound: Bound
    sentence: str


def judge(kernel: Kernel, bytes_in: int) -> Judgement:
    """What bounds a kernel that has to read so many bytes, and what to try."""
    memory, compute = max(kernel.get("memory_percent"), kernel.get("dram_percent")), kernel.get("sm_percent")
    shares = f"memory {memory:.0f} % of its peak (DRAM {kernel.get('dram_percent'):.0f} %), SM {compute:.0f} %"
    bound: Bound
    if max(memory, compute) < LATENCY:
        bound, advice = "latency", against_latency(kernel)
    elif memory >= compute:
        bound, advice = "memory", against_memory(kernel, bytes_in)
    else:
        bound, advice = "compute", against_compute(kernel)
    return Judgement(bound, f"{kernel.name} is bound by {bound} ({shares}): {advice}.")


def against_memory(kernel: Kernel, bytes_in: int) -> str:
    """Too many bytes, a crowded cache, or the limit itself."""
    read = kernel.get("read_mb") * 1e6
    if read > MORE_THAN_ITS_INPUT * bytes_in and kernel.get("bytes_per_sector", 32) < GOOD_SECTOR:
        return f"it reads {read / bytes_in:.1f} times its input; let neighbouring lanes load neighbouring addresses"
    conflicts = kernel.get("bank_conflicts") / max(kernel.get("shared_passes"), 1)
    if kernel.get("dram_percent") < LATENCY and conflicts > CONFLICTS:
        return f"{conflicts:.0%} of the passes through shared memory are bank conflicts; pad its rows or use shuffles"
    if kernel.get("bytes_per_sector", 32) < GOOD_SECTOR:
        return (
            f"{kernel.get('bytes_per_sector'):.0f} of the 32 bytes of a sector are used; let neighbouring lanes load "
            "neighbouring addresses"
        )
    if kernel.get("dram_percent") < LATENCY:
        return "the caches or shared memory are the limit, not DRAM; keep more in registers, add by shuffles"
    if kernel.get("dram_percent") < SATURATED:
        return f"DRAM is not full yet; {loads_in_flight(kernel)}"
    return "DRAM is full, so only fewer bytes help; fuse what comes before and after, or use a narrower type"


def against_compute(kernel: Kernel) -> str:
    if kernel.get("lanes_per_instruction", 32) < GOOD_WARP:
        return divergence(kernel)
    return "instructions are the limit; load 16 bytes at a time, unroll, and move work out of the inner loop"


def against_latency(kernel: Kernel) -> str:
    """The first cause that the counters show."""
    if kernel.get("waves", 1.0) < 0.5:
        return (
            f"its {kernel.get('blocks'):.0f} blocks fill {kernel.get('waves'):.2f} of the GPU; "
            "give it more blocks, a longer input, or several inputs in one launch"
        )
    if kernel.get("lanes_per_instruction", 32) < GOOD_WARP:
        return divergence(kernel)
    if kernel.waits_for in ("barrier", "membar"):
        return "warps wait for each other; use fewer barriers: fold a warp by shuffles, a block once at its end"
    if kernel.waits_for in ("short_scoreboard", "mio_throttle"):
        return "warps wait for shared memory; add in registers first, fold by shuffles, and mind bank conflicts"
    if kernel.waits_for in ("lg_throttle", "drain"):
        return "its small loads, stores or atomics queue; make them fewer and wider, one atomic a block at most"
    return f"warps wait{' for memory' if kernel.waits_for == 'long_scoreboard' else ''}; {loads_in_flight(kernel)}"


def divergence(kernel: Kernel) -> str:
    lanes = kernel.get("lanes_per_instruction")
    return f"{lanes:.0f} of 32 lanes work in an instruction; let the lanes of a warp take the same branch"


def loads_in_flight(kernel: Kernel) -> str:
    """More loads in flight, by a thread or by more warps."""
    advice = "keep more loads in flight: 16-byte loads, several of them before the first is used"
    if kernel.get("occupancy_percent", 100) < 50:
        advice += (
            f", or more warps (occupancy {kernel.get('occupancy_percent'):.0f} %): fewer registers, less shared memory"
        )
    return advice
