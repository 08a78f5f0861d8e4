PYTHON ?= python3
PIP = .venv/bin/python -m pip --quiet --disable-pip-version-check
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Runs a command after bringing what this machine lacks of Go and a C compiler.
TOOLS = .venv/bin/python -m build_support.tools
MATRIX = $(TOOLS) .venv/bin/python -m build_support.test_matrix
SUMMARY = .venv/bin/python -m build_support.summary
# The site is built by packages that the tests are to do without.
DOCS = .venvs/docs/bin/python
MAKEFLAGS += --no-print-directory
# A registry that does not answer is asked again.
export PIP_RETRIES ?= 10
.PHONY: demo test test-all bare house check go-test py-test py-test-all trial trial-go interop sanitize mutations model test-gpu bench kernels wheel wheels sdist packaging release install docs docs-look clean

demo: .venv ; $(PIP) install . numpy && .venv/bin/python examples/hello.py
test: .venv ; $(TOOLS) $(SUMMARY) check+go-test+trial-go py-test sanitize+docs
test-all: .venv ; $(TOOLS) $(SUMMARY) check+go-test py-test-all trial sanitize packaging docs
bare: ; $(PYTHON) -m build_support.bare
house: .venv ; $(TOOLS) go run ./internal/house $(FOLDERS) $(if $(WALK),-walk)
go-test: .venv ; $(TOOLS) .venv/bin/python -m build_support.go_tests
check: .venv ; $(TOOLS) build_support/check.sh $(STATICCHECK)
py-test: .venv ; $(MATRIX)
py-test-all: .venv ; $(MATRIX) --all
trial: .venv ; $(TOOLS) .venv/bin/python -m build_support.trial
trial-go: .venv ; $(TOOLS) .venv/bin/python -m build_support.trial --go
interop: .venv ; $(MATRIX) --libraries --record docs/results/interop-host.json && .venv/bin/python -m build_support.interop_table
sanitize: .venv ; $(TOOLS) .venv/bin/python -m build_support.sanitize
mutations: .venv ; $(TOOLS) .venv/bin/python -m build_support.mutations
model: .venv ; $(TOOLS) go test ./gobuffer -run TestModel -count=1 -timeout 0 -v -model.runs=$(or $(RUNS),10000) -model.steps=$(or $(STEPS),150) -model.faults=$(or $(FAULTS),200) $(if $(SEED),-model.seed=$(SEED)) $(if $(MODE),-model.mode='$(MODE)')
test-gpu: ; $(PYTHON) -m build_support.test_matrix --gpu $(if $(WHEEL),--wheel $(WHEEL))
bench: .venv ; $(PIP) install '.[plot]' && .venv/bin/hamr bench --only host --json docs/results/host.json && .venv/bin/python build_support/figures.py
kernels: .venv ; $(PIP) install 'nvidia-cuda-nvrtc-cu12==12.0.*' && .venv/bin/python backends/cuda/kernels/compile.py
wheel: .venv ; $(PIP) wheel --no-deps -w dist . && .venv/bin/python -m build_support.check_wheel dist/*.whl
wheels: .venv ; $(PIP) install '.[release]' && $(TOOLS) .venv/bin/python -m build_support.wheels $(WHEELS)
sdist: .venv ; $(PIP) install build && $(TOOLS) .venv/bin/python -m build_support.source_archive $(if $(VENDOR),--vendor)
packaging: .venv ; $(PIP) install build && $(TOOLS) .venv/bin/python -m build_support.packaging_trial
release: .venv ; $(PIP) install '.[release]' && $(TOOLS) .venv/bin/python -m build_support.release --checks $(or $(CHECKS),test-all)
install: .venv ; $(TOOLS) .venv/bin/python -m build_support.install '$(or $(PREFIX),/usr/local)' $(if $(DESTDIR),--destdir '$(DESTDIR)')
docs: .venv .venvs/docs ; $(DOCS) -m build_support.wheel_at_hand docs,dask numpy && HAMR_DOCS_GO=required $(TOOLS) $(DOCS) -m build_support.site
docs-look: docs ; $(DOCS) -m pip --quiet install 'selenium==4.51.0' && $(DOCS) -m build_support.site_look
clean: ; rm -rf build dist .venv .venvs python/hamr/_gopy python/hamr/*.so python/*.egg-info
.venv: ; $(PYTHON) -m venv .venv
.venvs/docs: ; $(PYTHON) -m venv .venvs/docs
