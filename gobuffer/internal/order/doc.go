// Package order knows which work was enqueued on which stream, what comes before what, and what is not over yet.
// It knows no memory: who records a Work in a Uses, and whether that has to be waited for, is the caller's business.
//
//   - [Work] is what a stream holds or, by a [Ticket], one part of it: it can be waited for, and followed by others;
//   - [Uses] is what was recorded and is not known to be over, of one allocation or of one loaded module;
//   - [Stays] and what is beside it say what must not be asked of a stream that may have ended;
//   - [Sequence] is told of all work, and says of any two what comes first.
package order
