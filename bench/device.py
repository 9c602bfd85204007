"""Where the cases run, and one case's measurement: every provider checked, then timed in turns on the same inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from bench import cases, harness, reference
from bench.cases import Case
from bench.providers import NotApplicable, prepare
from bench.results import MODES, OURS

READERS = ("gpureduce", "torch", "cub")  # whose best read of 4 GiB is the limit


class Device:
    """CUDA graphs on a GPU, rotating eager calls on a CPU (for a look only; see bench_cpu)."""

    def __init__(self, name: str, providers: Sequence[str], seconds: float) -> None:
        self.name, self.seconds = name, seconds
        self.read_limit = 0.0  # bytes per us
        self.small_bytes, self.most_replays, self.most_seconds = harness.SMALL_BYTES, 11, math.inf
        self._made: tuple[object, list[torch.Tensor]] = (None, [])  # the last inputs, and what they are
        if name == "cuda":
            self.flush = harness.Flush()
            self.canary = harness.Canary(self.flush)
            self.read_limit = self._measure_read_limit([name for name in READERS if name in providers])
            print(f"read limit B = {self.read_limit / 1e3:,.0f} GB/s, canary {self.canary.first_us:.2f} us", flush=True)

    def _measure_read_limit(self, providers: Sequence[str]) -> float:
        case = Case((1 << 20,), None, torch.float32)
        x = cases.make_input(case, self.name)
        return harness.read_limit(self._calls(case, providers, x, {}), self.flush)

    def floor_us(self, case: Case) -> float:
        return harness.floor_us(case, self.read_limit, self.small_bytes) if self.read_limit else 0.0

    def state(self) -> dict[str, object]:
        if self.name != "cuda":
            return {}
        canary = self.canary()
        return {"canary_us": canary, "state": "fast" if canary < 1.08 * self.canary.first_us else "slow"}

    def measure(self, case: Case, providers: Sequence[str]) -> tuple[dict[str, harness.Timing], dict[str, str]]:
        """Timings of the providers that are right, and what went wrong with the others."""
        notes: dict[str, str] = {}
        inputs = self._inputs(case)
        calls = self._calls(case, providers, inputs[0], notes)
        count = harness.call_count(self.floor_us(case), len(inputs)) if self.read_limit else len(inputs)
        expected = {i: reference.reference(case, inputs[i]) for i in (0, len(inputs) - 1)}
        graphs: dict[str, harness.Captured] = {}
        for name, fn in calls.items():
            try:
                if self.name == "cuda":
                    graphs[name] = harness.Captured(fn, inputs, count)
                    got = graphs[name].results(len(inputs))
                else:
                    got = [fn(x) for x in inputs]
            except RuntimeError as error:  # out of memory, or something that cannot be captured
                notes[name] = _first_line(error)
                continue
            rival = name not in (OURS, *MODES)
            faults = [reference.fault(case, got[i], expected[i], rival) for i in expected]
            if any(faults):
                notes[name] = f"WRONG: {next(filter(None, faults))}"
        calls = {name: fn for name, fn in calls.items() if name not in notes}
        graphs = {name: graph for name, graph in graphs.items() if name not in notes}
        if not calls:
            return {}, notes
        if self.name == "cpu":
            return harness.time_host(calls, inputs, 1.0), notes
        replays = harness.replay_count(self.floor_us(case) * count, self.most_replays)
        return harness.time_graphs(graphs, self.flush, replays, seconds=self.most_seconds), notes

    def _inputs(self, case: Case) -> list[torch.Tensor]:
        """Fresh ones, but for a case that wants what the last one had."""
        if self._made[0] != case.inputs:
            self._made = (None, [])  # their memory first
            count = harness.buffer_count(case.bytes_in, self.flush.l2_bytes) if self.name == "cuda" else 2
            self._made = (case.inputs, [cases.make_input(case, self.name) for _ in range(count)])
        return self._made[1]

    def _calls(
        self, case: Case, providers: Sequence[str], x: torch.Tensor, notes: dict[str, str]
    ) -> dict[str, harness.Call]:
        calls = {}
        for name in providers:
            try:
                calls[name] = prepare(name, case, x, self.seconds)
            except NotApplicable:
                continue
            except Exception as error:  # a rival that refuses or fails must not end the run; its note is kept
                notes[name] = _first_line(error)
        return calls


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]
