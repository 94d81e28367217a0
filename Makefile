# The same few verbs everywhere. The first one sets up; what is needed is Python 3.11 or newer, and nothing else.
#   make demo | test | check | docs | examples | bench | clean
#   make test PYTHON=python3.12     the same on another Python, in an environment of its own

PYTHON ?= python3
VENV ?= $(if $(filter python3,$(PYTHON)),.venv,.venv-$(notdir $(PYTHON)))
WORKERS ?= 2
SLICE ?=

UV_VERSION := 0.13.9
uv := $(VENV)-uv/bin/uv
bin := $(VENV)/bin
ready := $(VENV)/.ready

export UV_PROJECT_ENVIRONMENT := $(VENV)
export UV_PYTHON_DOWNLOADS := never
export UV_SYSTEM_CERTS := true
# Tests start hundreds of processes: each reads the bytecode that an earlier one wrote, also where the environment says to write none.
export PYTHONDONTWRITEBYTECODE :=
# Tests commit thousands of times: in memory where there is such a folder, so that a slow disk is not what they measure.
export PYTEST_DEBUG_TEMPROOT := $(wildcard /dev/shm)

.DELETE_ON_ERROR:
.PHONY: setup demo test quick check lint types imports budgets docs examples bench format lock clean

setup: $(ready)

$(uv):
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Tarry needs Python 3.11 or newer with its venv module; '$(PYTHON)' is not that. Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)-uv
	@$(VENV)-uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv==$(UV_VERSION)'

$(ready): pyproject.toml uv.lock | $(uv)
	@$(uv) sync --frozen --quiet --python '$(shell command -v $(PYTHON))'
	@touch $@

demo: $(ready)
	@$(bin)/tarry demo

# Coverage starts before pytest does: the plugin that Tarry brings is loaded with it. It makes everything half as fast,
# so that only what covers most in least time is measured; what that is goes first, as most mistakes show there.
measured := tests/unit/ tests/contract/ tests/integration/
processes := $(wildcard tests/integration/test_*process*.py)
unmeasured := $(wildcard tests/test_*.py) $(processes) \
  $(filter-out $(measured),$(sort $(dir $(wildcard tests/*/test_*.py))))

# A machine with much else to do may make a test late. What failed runs once more; the end tells which those were, and
# why. More than five of them are no chance any more.
second_chance := --reruns 1 --max-suite-reruns 5 --rerun-show-tracebacks
pytest := pytest -n $(WORKERS) --dist worksteal $(second_chance)

test: $(ready)
	@rm -f .coverage .coverage.*
	@$(bin)/coverage run -m $(pytest) $(measured) $(processes:%=--ignore=%)
	@$(bin)/coverage combine --quiet
	@echo "Coverage of the core: every branch" && $(bin)/coverage report --include='src/tarry/core/*' --fail-under=100
	@echo "Coverage of the rest: 95 %" && $(bin)/coverage report --omit='src/tarry/core/*' --fail-under=95
	@$(bin)/$(pytest) $(unmeasured)

quick: $(ready)
	@$(bin)/$(pytest) -m 'not slow' $(SLICE)

check: lint types imports budgets

lint: $(ready)
	@$(bin)/ruff check .
	@$(bin)/ruff format --check .

types: $(ready)
	@$(bin)/mypy
	@$(bin)/pyright --warnings --pythonpath $(bin)/python

imports: $(ready)
	@$(bin)/lint-imports --no-cache

budgets: $(ready)
	@$(bin)/pytest -q tests/test_architecture.py tests/test_exports.py

docs: $(ready)
	@$(bin)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

examples: $(ready)
	@$(bin)/pytest -q tests/test_examples.py

# Tarry beside its peers, which have an environment of their own. ONLY=cpu,late picks figures, QUICK=1 is a smoke run.
bench: | $(uv)
	@UV_PROJECT_ENVIRONMENT=$(VENV)-bench $(uv) sync --frozen --quiet --no-default-groups --group bench --extra postgres \
	  --python '$(shell command -v $(PYTHON))'
	@$(VENV)-bench/bin/python -m benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick) $(if $(WRITE),--write)

format: $(ready)
	@$(bin)/ruff check --fix .
	@$(bin)/ruff format .

lock: | $(uv)
	@$(uv) lock --upgrade

clean:
	rm -rf .venv* docs/_build build dist htmlcov .coverage* .hypothesis .pytest_cache .mypy_cache .ruff_cache
