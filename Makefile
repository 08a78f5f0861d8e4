PYTHON ?= python3
PIP = .venv/bin/python -m pip --quiet --disable-pip-version-check
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Continued after a failure, so that one run shows all that fails.
MAKEFLAGS += --keep-going --no-print-directory
.PHONY: demo test check go-test py-test interop sanitize mutations model test-gpu bench kernels wheel sdist clean

demo: .venv ; $(PIP) install . numpy && .venv/bin/python examples/hello.py
test: check go-test py-test sanitize
go-test: ; go vet ./... && go test -race ./...
check: .venv ; build_support/check.sh $(STATICCHECK)
py-test: .venv ; .venv/bin/python build_support/test_matrix.py
interop: .venv ; .venv/bin/python build_support/test_matrix.py --libraries --record docs/results/interop-host.json && .venv/bin/python -m build_support.interop_table
sanitize: .venv ; $(PIP) install .[test] && .venv/bin/python build_support/sanitize.py
mutations: ; $(PYTHON) build_support/mutations.py
model: ; go test ./gobuffer -run 'TestModel$$' -count=1 -timeout 0 -v -model.runs=$(or $(RUNS),10000) -model.steps=$(or $(STEPS),150) $(if $(SEED),-model.seed=$(SEED)) $(if $(MODE),-model.mode='$(MODE)')
test-gpu: ; $(PYTHON) build_support/test_matrix.py --gpu $(if $(WHEEL),--wheel $(WHEEL))
bench: .venv ; $(PIP) install . numpy && .venv/bin/hamr bench --json docs/results/host.json && .venv/bin/python build_support/figures.py
kernels: .venv ; $(PIP) install 'nvidia-cuda-nvrtc-cu12==12.0.*' && .venv/bin/python backends/cuda/kernels/compile.py
wheel: .venv ; $(PIP) wheel --no-deps -w dist . && .venv/bin/python build_support/check_wheel.py dist/*.whl
sdist: .venv ; $(PIP) install build && .venv/bin/python -m build --sdist >/dev/null
clean: ; rm -rf build dist .venv .venvs python/hamr/_gopy python/hamr/*.so python/*.egg-info
.venv: ; $(PYTHON) -m venv .venv
