"""What an interrupted call waits for before it returns, and what it does not, for mutations.py."""

from __future__ import annotations

from build_support.mutation import Mutation

STOP, TRANSFER, READ = "gobuffer/stop.go", "gobuffer/transfer.go", "gobuffer/read.go"
STAGED, STAGING = "backends/internal/staging/transfer.go", "./backends/internal/staging"
SLICES, BRIDGE = "pyhamr/internal/bridge/slices.go", "./pyhamr/internal/bridge"

STOP_MUTATIONS = [
    Mutation(
        "a staged transfer does not end when it is asked to",
        STAGED,
        "if t.driver.Stopped() {",
        "if false {",
        STAGING,
    ),
    Mutation(
        "a stopped transfer's chunks are taken for free",
        STAGED,
        "if !over || err != nil {\n\t\treturn false, err\n\t}\n\tt.earlier",
        "if over = true; !over || err != nil {\n\t\treturn false, err\n\t}\n\tt.earlier",
        STAGING,
    ),
    Mutation(
        "a wait does not end when it is asked to",
        STOP,
        "if stop.Asked() {\n\t\t\treturn backends.ErrStopped\n\t\t}\n\t\tpauses",
        "if false {\n\t\t\treturn backends.ErrStopped\n\t\t}\n\t\tpauses",
    ),
    Mutation(
        "a runtime is given ordinary memory to write to before the work is over that it waits for",
        TRANSFER,
        "if dst.memory.kind == backends.Pageable {\n\t\t// Once",
        "if false {\n\t\t// Once",
    ),
    Mutation(
        "what a stopped copy reads is taken for unused",
        TRANSFER,
        "if !stopped || src.memory.kind != backends.Pageable {",
        "if !stopped {",
    ),
    Mutation(
        "what a stopped copy writes to is taken for unused",
        TRANSFER,
        "if !stopped || dst.memory.kind != backends.Pageable {",
        "if !stopped {",
    ),
    Mutation(
        "what a stopped reading reads is taken for unused",
        READ,
        "return errors.Join(err, m.mark(&marked, before))",
        "_ = marked\n\t\treturn err",
    ),
    Mutation(
        "an operation that was asked to end is not waited for",
        SLICES,
        "o.stop.Ask()\n\t<-o.over\n",
        "o.stop.Ask()\n",
        BRIDGE,
    ),
    Mutation(
        "an operation goes on elsewhere though its stream means another one there",
        SLICES,
        "if 0 < d.Stream && d.Stream < specialStream {",
        "if false {",
        BRIDGE,
    ),
]
