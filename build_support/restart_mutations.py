"""What a restarted server of the store knows depends on, for mutations.py."""

from __future__ import annotations

from build_support.mutation import Mutation

BOOK, REMEMBER, RETELL, JOIN, ADOPT = (
    f"store/{n}.go" for n in ("book", "remember", "retell", "join", "adopt")
)
PACKAGE = "./store"

RESTART_MUTATIONS = [
    Mutation(
        "what was asked of an object is not written down",
        REMEMBER,
        "	s.book.note(operation, payloads...)\n",
        "",
        PACKAGE,
    ),
    Mutation(
        "an older entry of a book holds",
        REMEMBER,
        "if ok && f.when < latest && f.when > s.book.facts[key].when {",
        "if ok && f.when < latest {",
        PACKAGE,
    ),
    Mutation(
        "an entry of a time that has not come holds",
        REMEMBER,
        "if ok && f.when < latest && f.when",
        "if ok && f.when < latest+1<<63 && f.when",
        PACKAGE,
    ),
    Mutation(
        "a rewritten book begins where it began",
        BOOK,
        "began := binary.LittleEndian.AppendUint64(nil, uint64(start))",
        "began := binary.LittleEndian.AppendUint64(nil, bookHeader)",
        PACKAGE,
    ),
    Mutation(
        "what a book says does not hold of an object that is told later",
        ADOPT,
        "	s.recall(o)\n",
        "",
        PACKAGE,
    ),
    Mutation(
        "who got an object before its seal is taken for its maker",
        RETELL,
        "if !h.made && !info.Sealed {",
        "if false {",
        PACKAGE,
    ),
    Mutation(
        "who got an object before its seal is believed",
        ADOPT,
        "sealed = true // since this client got it",
        "",
        PACKAGE,
    ),
    Mutation(
        "a seal that others do not know of is not written down",
        "store/requests.go",
        "if o.leases > 1 || o.learned { // others may know",
        "if false { // others may know",
        PACKAGE,
    ),
    Mutation(
        "a client that makes no call tells nothing",
        JOIN,
        "if c.joining || c.closed || len(c.held) == 0 {",
        "if true {",
        PACKAGE,
    ),
    Mutation(
        "what a server had no room for is not told again",
        RETELL,
        "return errors.As(err, new(*FullError)) || errors.As(err, new(*SystemError))",
        "return false",
        PACKAGE,
    ),
    Mutation(
        "what others have still to tell is not waited for",
        "store/exchange.go",
        "expecting := r.finds && c.book",
        "expecting := false && c.book",
        PACKAGE,
    ),
]
