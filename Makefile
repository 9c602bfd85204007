# One command each:
#   make demo      train on real images through gpureduce, then compare speed and accuracy with torch.sum
#   make test      the test suite
#   make bench     device and host time and accuracy against torch, torch.compile and CUB, then the report
#   make report    the README's tables and plots, from bench/results
#   make ladder    the ladder of kernels, measured on this GPU
#   make golden    write the golden bits anew (only when the tree's version changes)
#   make sanitize  compute-sanitizer, memcheck and racecheck
#   make format    rewrite the sources' layout;   make lint   check it, and the types
#   make wheel     a wheel with machine code for every supported GPU
# PYTHON=python3 uses an existing environment that has torch, and downloads nothing. Without it, the current python3 is
# used if it has every package that is needed, else an environment is made in .venv.

MODULES := torch setuptools wheel ninja numpy pytest hypothesis rich matplotlib sklearn
PACKAGES := "torch>=2.11" setuptools wheel ninja numpy pytest hypothesis rich matplotlib scikit-learn mypy ruff clang-format

ifeq ($(origin PYTHON),undefined)
  HAS_ALL := $(shell python3 -c "import importlib.util as u; print(all(map(u.find_spec, '$(MODULES)'.split())))" 2>/dev/null)
  ifeq ($(HAS_ALL),True)
    PYTHON := python3
  else
    PYTHON := .venv/bin/python
    ENVIRONMENT := .venv/ready
  endif
endif

SOURCES := $(shell find csrc bench tests docs -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh')
TOOLS := $(dir $(shell command -v $(PYTHON) 2>/dev/null || echo $(PYTHON)))
CLANG_FORMAT = $(firstword $(wildcard $(TOOLS)clang-format) clang-format)
ALL_GPUS := 7.5 8.0 8.6 8.9 9.0 10.0 12.0+PTX
# The architecture of the present GPU, else 9.0: one is quick to build.
ONE_GPU := import torch; print("%d.%d" % (torch.cuda.get_device_capability() if torch.cuda.is_available() else (9, 0)))

.PHONY: demo test bench report ladder golden sanitize format lint wheel build
.DEFAULT_GOAL := test

.venv/ready:
	test -x .venv/bin/python || python3 -m venv .venv
	.venv/bin/python -m pip install $(PACKAGES)
	touch $@

build: $(ENVIRONMENT)
	@$(PYTHON) -c 'import sys, torch; print("Python", sys.version.split()[0], "with torch", torch.__version__)'
	@set -e; gpu="$${TORCH_CUDA_ARCH_LIST:-$$($(PYTHON) -c '$(ONE_GPU)')}"; \
	echo "building torch_reduce/_C.so (CUDA part for compute capability $$gpu; some minutes the first time)"; \
	TORCH_CUDA_ARCH_LIST="$$gpu" $(PYTHON) setup.py build_ext --inplace

demo: build
	$(PYTHON) -m bench.demo

test: build
	$(PYTHON) -m pytest tests

bench: build
	@if $(PYTHON) -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then set -ex; \
	  $(PYTHON) -m bench.bench_reduce --suite grid models heatmap accumulate ops; \
	  $(PYTHON) -m bench.bench_host; \
	  $(PYTHON) -m bench.bench_clip; \
	  $(PYTHON) -m bench.bench_ladder --cub; \
	  if command -v ncu; then $(PYTHON) -m bench.counters_ladder; fi; \
	else echo "no GPU here: CPU only"; fi
	$(PYTHON) -m bench.bench_accuracy
	$(PYTHON) -m bench.bench_cpu
	$(PYTHON) -m bench.report

report: $(ENVIRONMENT)
	$(PYTHON) -m bench.report

ladder: build
	$(PYTHON) -m torch_reduce ladder

golden: build
	$(PYTHON) -m tests.golden

sanitize: build
	@set -e; sanitizer=$$(command -v compute-sanitizer || echo "$${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer"); set -x; \
	PYTORCH_NO_CUDA_MEMORY_CACHING=1 "$$sanitizer" --tool memcheck --target-processes all --error-exitcode 1 $(PYTHON) -m tests.sanitize; \
	"$$sanitizer" --tool racecheck --target-processes all --error-exitcode 1 $(PYTHON) -m tests.sanitize

format: $(ENVIRONMENT)
	$(CLANG_FORMAT) -i $(SOURCES)
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

lint: $(ENVIRONMENT)
	$(CLANG_FORMAT) --dry-run -Werror $(SOURCES)
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy --strict torch_reduce

wheel: $(ENVIRONMENT)
	TORCH_CUDA_ARCH_LIST="$(ALL_GPUS)" $(PYTHON) -m pip wheel --no-build-isolation --no-deps -w dist .
