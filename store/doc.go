// Package store shares memory of the host and of devices between the processes of one user on
// one machine, and keeps it when any of them dies.
//
// A [Server] is a process that keeps objects: arrays that were filled once, and which nobody
// changes any more when they are sealed. It holds descriptors of their memory and never looks at
// it, so that it needs no device; other processes map the memory itself. A [Client] makes
// objects, finds them by id or name, and maps them: no elements are copied.
//
// An object is made by Create, whose Builder has an array to write to, and is there for everybody
// after Seal. Get returns one for reading. Who has an object has a lease of it, which ends with
// Release, or with the process: what is deleted meanwhile keeps its memory until the last lease
// ended, and is found by nobody else. An object that was not sealed goes with its maker; one that
// was stays until it is deleted, or evicted where its maker has allowed that.
//
// What the server may hold is limited: in bytes of the host's memory, and of each device's.
//
// When the server ends, what is mapped stays. Calls return a *LostError then; each tries once to find another server at
// the same path first. Clients that have objects look for one by themselves, and tell it of these, and of the names,
// marks and deletions that the server before had answered.
package store
