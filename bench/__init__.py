"""Benchmarks, the demo and the report. Run the modules from the repository root: python -m bench.bench_reduce."""
