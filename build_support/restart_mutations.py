"""What a restarted server of the store knows depends on, for mutations.py."""

from __future__ import annotations

from build_support.mutation import Mutation

BOOK, BOOK_FILE, REMEMBER, RETELL, JOIN, ADOPT = (
    f"store/{n}.go" for n in ("book", "book_file", "remember", "retell", "join", "adopt")
)
PACKAGE = "./store"

RESTART_MUTATIONS = [
    Mutation(
        "what was asked of an object is not written down",
        REMEMBER,
        "	s.book.note(operation, payload)\n",
        "",
        PACKAGE,
    ),
    Mutation(
        "an older entry of a book holds",
        BOOK,
        "had == nil || f.when > had.when",
        "had == nil || f.when != 0",
        PACKAGE,
    ),
    Mutation(
        "an entry of a time that has not come holds",
        BOOK,
        "f.kept == nil || f.when >= before {",
        "f.kept == nil {",
        PACKAGE,
    ),
    Mutation(
        "a book's readers begin behind entries that hold",
        BOOK_FILE,
        "AppendUint64(nil, uint64(start)), startAt)",
        "AppendUint64(nil, uint64(b.end)), startAt)",
        PACKAGE,
    ),
    Mutation(
        "a book gives back memory of entries that hold",
        BOOK_FILE,
        "min(b.began/pageSize*pageSize-b.freed, freeAtOnce)",
        "min(roundUp(b.began, pageSize)-b.freed, freeAtOnce)",
        PACKAGE,
    ),
    Mutation(
        "a book never gets shorter",
        BOOK_FILE,
        "if tooLong() && b.move(",
        "if false && b.move(",
        PACKAGE,
    ),
    Mutation(
        "as much is copied with a long entry as with a short one",
        BOOK_FILE,
        "max(grown, copyAtOnce)",
        "max(0*grown, copyAtOnce)",
        PACKAGE,
    ),
    Mutation(
        "a name that an object is given again is not written down",
        "store/queries.go",
        "		s.note(opPutName, payload) // an earlier",
        "		// an earlier",
        PACKAGE,
    ),
    Mutation(
        "a deleted object keeps its names",
        BOOK,
        "known && later.when > f.when",
        "known && later.when == 0",
        PACKAGE,
    ),
    Mutation(
        "facts are forgotten while clients may still tell of their objects",
        BOOK,
        "if b.learning > 0 || b.keeps > clock() {",
        "if false {",
        PACKAGE,
    ),
    Mutation(
        "names of what was evicted come back with it",
        "store/tables.go",
        's.noteDropped(o, "")',
        "_ = o",
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
