"""What the store and memory that processes share depend on, for mutations.py."""

from __future__ import annotations

from build_support.mutation import Mutation

TABLES, EVICT, UNIT = "store/tables.go", "store/evict.go", "store/memory.go"
HOST, CORE, PACKAGE = "backends/host/sharing.go", "gobuffer/sharing.go", "./store"

STORE_MUTATIONS = [
    Mutation(
        "a sealed file is not sealed",
        UNIT,
        "if forGood, err = host.SealShared(u.descriptor.number); err != nil {",
        "if forGood = true; err != nil {",
        PACKAGE,
    ),
    Mutation(
        "a slab is not sealed against others",
        UNIT,
        "else if err := host.SealMappings(u.descriptor.number); err != nil {",
        "else if err := error(nil); err != nil {",
        PACKAGE,
    ),
    Mutation(
        "a lease does not keep an object from eviction",
        TABLES,
        "blocks := o.leases > 0 || (",
        "blocks := (",
        PACKAGE,
    ),
    Mutation(
        "a deleted object's memory goes while it is leased",
        TABLES,
        "if o.leases == 0 {\n\t\ts.drop(o)\n\t\treturn\n\t}\n\to.update()\n\tif u",
        "if true {\n\t\ts.drop(o)\n\t\treturn\n\t}\n\to.update()\n\tif u",
        PACKAGE,
    ),
    Mutation(
        "an unsealed object of a session that ended is kept",
        TABLES,
        "for o := range c.unsealed {\n\t\ts.remove(o, false, Deleted)\n",
        "for o := range c.unsealed {\n\t\t_ = o\n",
        PACKAGE,
    ),
    Mutation(
        "a limit is not enforced",
        EVICT,
        "for d.limit > 0 && bytes > d.limit-d.used {",
        "for false {",
        PACKAGE,
    ),
    Mutation(
        "who is at the other end is not looked at",
        "store/path.go",
        "if int(peer.Uid) != os.Geteuid() {",
        "if false {",
        PACKAGE,
    ),
    Mutation(
        "a session lasts as long as a forked child's copy of its socket",
        "store/leader.go",
        "l.server.links.deaf(k)\n\t\tk.hang()",
        "l.server.links.deaf(k)",
        PACKAGE,
    ),
    Mutation(
        "a mapping for reading is made for writing",
        HOST,
        "if !readOnly {\n",
        "if true {\n",
        "./backends/host",
    ),
    Mutation(
        "a mapping for reading can be made writable",
        HOST,
        "mapAnywhere(readable, size",
        "mapAnywhere(descriptor, size",
        "./backends/host",
    ),
    Mutation(
        "a device writes to shared memory that is for reading",
        "backends/cuda/growing_memory.go",
        "access.flags = readOnly",
        "access.flags = readWrite",
        "./backends/cuda",
    ),
    Mutation(
        "shared memory is made read-only under work",
        CORE,
        "if err := m.settleIf(func(*work) bool { return true }); err != nil {",
        "if err := error(nil); err != nil {",
    ),
    Mutation(
        "shared memory is made read-only under other libraries' work",
        CORE,
        "_, err := settleDevice(m.backend, m.region.Device)",
        "err := error(nil)",
    ),
    Mutation(
        "shared memory is unmapped under work",
        "gobuffer/release.go",
        "waits := m.grower != nil || m.unmap != nil",
        "waits := m.grower != nil",
    ),
    Mutation(
        "shared memory that could not be unmapped is forgotten",
        CORE,
        "r.postponed.add(m)\n\t\treturn err",
        "return err",
    ),
    Mutation(
        "memory that was lent goes before the processes have ended that have it",
        "gobuffer/share_watcher.go",
        "l.left.Store(int32(len(l.holders)) + 1)",
        "l.left.Store(1)",
    ),
    Mutation(
        "memory that was lent stays where a process has let go of it",
        "gobuffer/share_watcher.go",
        "known.times--; known.times <= 0",
        "known.times--; known.times < 0",
    ),
    Mutation(
        "what a lane says does not keep memory until its process has ended",
        "gobuffer/share_watcher.go",
        "if each.has(l) {",
        "if each.has(l) && l.slot < 0 {",
    ),
    Mutation(
        "what a lane says stays where its process has let go of it",
        "gobuffer/share_lanes.go",
        "atomic.StoreUint64(&found.words[n.slot], 0)",
        "_ = found",
    ),
    Mutation(
        "a lease that was made ahead is lent twice",
        "gobuffer/share_spare.go",
        "made := s.lease\n\ts.lease = nil",
        "made := s.lease",
    ),
    Mutation(
        "forked children close a lease that was made ahead and is lent",
        "gobuffer/share_spare.go",
        "s.ends[0].Store(0)\n\ts.ends[1].Store(0)",
        "_ = s.ends",
    ),
    Mutation(
        "a reply that nobody waits for any more is nobody's",
        "store/exchange.go",
        "c.abandoned[c.request] = r",
        "_ = r",
        "./store",
    ),
    Mutation(
        "all wait for a request that takes long",
        "store/leader.go",
        "l := s.acting\n\tif l == nil {",
        "l := s.acting\n\tif true {",
        PACKAGE,
    ),
    Mutation(
        "a death is told of whoever has the descriptor's number",
        "store/link.go",
        "if l.open[k.number] == k {",
        "if true {",
        PACKAGE,
    ),
    Mutation(
        "one lease of what was forgone is ended",
        "store/seal.go",
        "release{h.info.ID, times}",
        "release{h.info.ID, min(times, 1)}",
        PACKAGE,
    ),
    Mutation(
        "what somebody has got meanwhile is forgone",
        "store/seal.go",
        "b.forgone = b.forgone && b.held.users == 1",
        "b.forgone = b.forgone && b.held != nil",
        PACKAGE,
    ),
    Mutation(
        "who asked for a reply in vain goes on asking",
        "store/spinner.go",
        "s.skips = s.skipped",
        "s.skips = 0",
        "./store",
    ),
    Mutation(
        "who seals is made to wait for work of a device's that handles no signals",
        "store/seal.go",
        "return idle && err == nil",
        "return idle || err == nil",
        "./store",
    ),
    Mutation(
        "leases of which the end was put off are still there when it is asked for",
        "pyhamr/internal/bridge/endings.go",
        "e.ending.Lock()\n\tdefer e.ending.Unlock()\n",
        "",
        "./pyhamr/internal/bridge",
    ),
]
