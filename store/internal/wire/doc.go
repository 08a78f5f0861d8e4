// Package wire is what a store's packets go by: sockets and the waits for them, the socket's path, the lock beside it,
// and the descriptors that are this process's alone. It knows neither clients nor servers.
package wire
