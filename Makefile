# make demo and make test set themselves up in .venv, with Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PARALLEL := --numprocesses logical --maxprocesses 8 --dist worksteal
# One process a core: threads of linear algebra would only wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Tests start many processes, and each would compile all files of fairopt again where the environment forbids Python to keep them.
KEEP_COMPILED := PYTHONDONTWRITEBYTECODE=

.PHONY: demo test test-newest test-oldest fuzz test-slurm check bench bench-growth picture docs strip clean

demo: $(INSTALLED)  ## the exact fair allocation of 12,583 servers, what fairness costs in a lab of 37, and a report about it
	$(BIN)/fairopt solve examples/google-cluster.yaml --notion drfh
	$(BIN)/fairopt frontier examples/gpu-lab
	$(BIN)/fairopt report examples/gpu-lab --schedules drfh:best-fit --explain vision -o report.html --force

test: $(INSTALLED)  ## on all cores; pytest by hand runs one test after another
	$(ONE_THREAD) $(KEEP_COMPILED) $(BIN)/python -m pytest $(PARALLEL)

# Each in environments of their own under build, made anew. All extras are installed but torch, which is large: of it only the bound is declared.
# TESTS names some tests, and ONE=--one takes one Python: make test-newest ONE=--one TESTS=tests/commands
test-newest:  ## with the newest versions of all dependencies, on every Python from 3.11 to 3.14 that this machine has
	$(PYTHON) tests/support/environments.py newest $(ONE) $(TESTS)

test-oldest:  ## with the lower bounds of pyproject.toml, on Python 3.11
	$(PYTHON) tests/support/environments.py oldest $(TESTS)

fuzz: $(INSTALLED)  ## damaged and hostile files and stores, a hundred times as many as in make test, and new ones each time: half an hour
	$(ONE_THREAD) $(KEEP_COMPILED) HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest $(PARALLEL) tests/conformance/test_fuzz_files.py tests/conformance/test_fuzz_stores.py

test-slurm: $(INSTALLED)  ## with a real Slurm on this machine, as root: slurmctld slurmd slurmdbd mariadb-server munge of Debian
	$(BIN)/python -m pytest -m slurm tests/commands/test_real_slurm.py

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet tests/repository/test_architecture.py

bench: $(INSTALLED)  ## time and memory of fairopt and of its alternatives, into benchmarks/results
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/small_leximins.py
	$(BIN)/python benchmarks/first_runs.py
	$(BIN)/python benchmarks/schedules.py
	$(BIN)/python benchmarks/simulations.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/queues.py
	$(BIN)/python benchmarks/flows.py
	$(BIN)/python benchmarks/baselines.py
	$(BIN)/python benchmarks/limits.py
	$(BIN)/python benchmarks/by_server.py
	$(BIN)/python benchmarks/rules.py
	$(BIN)/python benchmarks/history.py
	$(BIN)/python benchmarks/replacing.py
	$(BIN)/python benchmarks/imports.py
	$(BIN)/python benchmarks/many_workers.py

bench-growth: $(INSTALLED)  ## how time and memory grow with pairs, users, servers, resources, density and levels: an estimated hour
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/equilibria.py
	$(BIN)/python benchmarks/whole_tasks.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/choices.py --anew
	$(BIN)/python benchmarks/in_fractions.py largest

picture: $(INSTALLED)
	$(BIN)/fairopt solve examples/gpu-lab --notion drfh --plot docs/images/gpu-lab.svg --force

docs: $(INSTALLED)  ## the pages, in docs/_build/html; built from scratch with their pictures and notebooks, because these come from the code: some minutes
	$(ONE_THREAD) $(BIN)/python -m sphinx -E -W -n --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

strip: $(INSTALLED)  ## removes the outputs of the notebooks
	$(BIN)/python notebooks/strip.py

clean:
	rm -rf .venv build docs/_build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage coverage.xml

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fairopt needs Python 3.11 or newer, and $(PYTHON) is not; say which one to use: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@echo "Installing fairopt and what its tests need into .venv; this takes a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
