#!/bin/sh
# Lint everything: check.sh STATICCHECK_MODULE@VERSION
set -eu
cd "$(dirname "$0")/.."
.venv/bin/python -m pip --quiet --disable-pip-version-check install $(
    .venv/bin/python -c 'import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["lint"])'
)
go vet ./...
go run "$1" ./...
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
.venv/bin/python -m tests.typing.checkers
