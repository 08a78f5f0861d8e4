// Package shares is how memory of this process reaches others, and theirs reaches this one. It lends memory until the
// last process that has it, or could get it, is gone, and it maps what others lend. It writes and reads the frames that
// say where elements lie.
//
// It knows backends, addresses and layouts of elements. Arrays, and who counts references to memory, are its caller's
// business: what is lent comes as a [Reference], what is mapped goes as an [Attachment].
//
// A lease is a pair of connected sockets: one end stays here, the other one goes with a frame, to as many processes as
// have it. When the kernel closes the last of these, for whatever reason, none of them has the memory any more, and
// none can get it. A process that opens the memory says so on its end, or in its lane, and again when it lets go. A
// process that ends without that may have work under way on a device still, until the kernel is done with it.
package shares
