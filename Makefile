# Every target sets up what it needs first, once. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What `make plan` and `make replan` plan for. WITH takes further parameters of the DAG: WITH="seed=1 max_task_slots=24".
JOB ?= nexmark-q5
RATE ?= 2500000
WITH ?=

# Where `make mlflow` listens.
PORT ?= 5000

# What `make flink` fetches.
FLINK_VERSION ?= 1.20

# All settings of the embedded Airflow: those shared by every deployment, then the places and the secret of this one.
include docker/airflow.env
export $(shell sed -n 's/^\([A-Z_]*\)=.*/\1/p' docker/airflow.env)
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHONPATH := $(CURDIR)/plugins
export SLUICE_WORKSPACE ?= $(CURDIR)/.sluice/workspace
export AIRFLOW_HOME := $(CURDIR)/.sluice/airflow
export AIRFLOW__CORE__DAGS_FOLDER := $(CURDIR)/dags
export AIRFLOW__CORE__PLUGINS_FOLDER := $(CURDIR)/plugins
export AIRFLOW__CORE__EXECUTION_API_SERVER_URL := http://127.0.0.1:8080/execution/
export AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS := sluice_airflow.standing.sqlite.CONNECT_ARGS
export AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS_ASYNC := sluice_airflow.standing.sqlite.CONNECT_ARGS_ASYNC
export AIRFLOW__API__HOST := 127.0.0.1
export AIRFLOW__API__BASE_URL := http://127.0.0.1:8080
export AIRFLOW__API_AUTH__JWT_SECRET_CMD := cat $(AIRFLOW_HOME)/jwt-secret

# One process for each folder of tests, whose servers they share. Of the three, one waits most of the time: it measures.
PYTEST := PYTHONDONTWRITEBYTECODE= pytest -n 3 --dist loadscope --no-loadscope-reorder

.PHONY: help setup plan replan plan-flink airflow mlflow flink env check quick test test-all fuzz audit wheel sbom licences lint format clean
help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## Set up uv, the locked environment, Java (the other targets do it themselves).
	@.ci/setup

plan: setup ## Plan JOB (nexmark-q5) for RATE (2500000 records/s): measure, model, place, publish.
	@python -m sluice_airflow.embedded dags/capacity_plan.py job='$(JOB)' rate='$(RATE)' $(WITH)

replan: setup ## Plan JOB for another RATE from its model and profile, without measuring.
	@python -m sluice_airflow.embedded dags/replan.py job='$(JOB)' rate='$(RATE)' $(WITH)

plan-flink: setup ## Measure q1 and q5 on a Flink of this machine, and plan them for it (15 to 20 minutes each).
	@sluice plan nexmark-q1 --testbed flink --cluster flink-local --rate 200000 --max-slots 5 --max-measurements 3
	@sluice plan nexmark-q5 --testbed flink --cluster flink-local --rate 8000 --max-slots 13 --max-measurements 3

airflow: setup ## Run Airflow with its scheduler and web pages on http://127.0.0.1:8080 (stop: Ctrl-C).
	@python -m sluice_airflow.standing

mlflow: setup ## Browse models and runs in MLflow on http://127.0.0.1:PORT (5000; stop: Ctrl-C).
	@python -m pipelines.registry.serving --port '$(PORT)'

flink: setup ## Fetch Flink of FLINK_VERSION (1.20) for measurements (230 MB, kept in the user's cache), and check it.
	@python -m testbeds.flink.local.distribution '$(FLINK_VERSION)'

env: ## Write .env, the secrets of docker-compose.yml, if there is none.
	@docker/make-env

# Lint takes one core for most of a minute where mypy has no cache.
check: ## Lint, types and the quick tests, which start no server: two minutes on two cores.
	@$(MAKE) --no-print-directory --jobs 2 lint quick

# Three processes for two cores, since tests wait for servers and clocks a third of the time; so BLAS gets no threads of its
# own. Rewriting the tests' asserts takes each of them ten seconds where Python may not keep the result; numba keeps its
# code in the same folders anyway.
quick: setup ## The quick tests alone.
	@OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= pytest -n 3 --dist worksteal -m 'not slow and not long' tests

test: lint ## Lint, types and all tests but the long ones.
	@.ci/setup tests
	@$(PYTEST) tests

test-all: test ## All of `make test`, then the tests that take minutes of real time.
	@pytest -m long tests

fuzz: setup ## 10,000 wrong inputs to every entry point, and new examples for the property tests.
	@SLUICE_FUZZ_CASES=10000 SLUICE_FUZZ_FIRST=$${SLUICE_FUZZ_FIRST:-$$RANDOM} pytest -s tests/fuzz
	@HYPOTHESIS_PROFILE=new $(PYTEST) -m 'hypothesis and not long' tests

audit: setup ## Look the locked packages up in the OSV database of vulnerabilities (needs the network).
	@.bootstrap/bin/uv audit --frozen --preview-features audit-command

wheel: setup ## Build the wheel and the source distribution into dist/.
	@.bootstrap/bin/uv build --quiet --out-dir dist

sbom: setup ## Write dist/sluice.cdx.json: the locked packages with digests (CycloneDX 1.5), without those for development.
	@mkdir -p dist
	@.bootstrap/bin/uv export --quiet --frozen --no-dev --extra deployment \
	  --preview-features sbom-export --format cyclonedx1.5 --output-file dist/sluice.cdx.json
	@echo "dist/sluice.cdx.json"

licences: setup ## Count the licences of all installed packages, and refuse what pyproject.toml does not allow.
	@pip-licenses --summary --order=count --allow-only= --ignore-packages=
	@pip-licenses >/dev/null

lint: setup ## Style, types, import rules and licences.
	@ruff format --check .
	@ruff check .
	@mypy
	@lint-imports
	@pip-licenses >/dev/null

format: setup ## Put the code in the style that lint asks for.
	@ruff format . && ruff check --fix .

clean: ## Remove the environment and all caches; plans and measurements in .sluice/workspace stay.
	@rm -rf .venv .bootstrap .sluice/airflow .sluice/logs build dist *.egg-info .[mr]*_cache \
	  .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
