package pyhamr

import (
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// The replies of these functions are texts; what begins with "!" is an error of the store's, as JSON.

// StoreServe starts a server of the store; options and reply are JSON.
//
//hamr:blocking
func StoreServe(options string) (string, error) { return bridge.StoreServe(options) }

// StoreServed returns a server's figures as JSON.
//
//hamr:blocking
func StoreServed(token uint64) (string, error) { return bridge.StoreServed(token) }

// StoreEndServer ends a server.
//
//hamr:blocking
func StoreEndServer(token uint64) (string, error) { return bridge.StoreEndServer(token) }

// StoreConnect connects to a server; the reply is JSON.
//
//hamr:blocking
func StoreConnect(path string) (string, error) { return bridge.StoreConnect(path) }

// StoreDisconnect ends a client.
//
//hamr:blocking
func StoreDisconnect(token uint64) int {
	bridge.StoreDisconnect(token)
	return 0
}

// StoreAllocator returns the allocator of objects that are where memory of another one is.
func StoreAllocator(allocator, device int) int {
	return int(bridge.StoreAllocator(backends.Allocator(allocator), device))
}

// StoreCreate makes an object.
//
//hamr:blocking
func StoreCreate(client uint64, element int, shape string, allocator, device, flags int, metadata string) (string, error) {
	return bridge.StoreCreate(client, element, shape, backends.Allocator(allocator), device, flags, metadata)
}

// StorePut makes and seals an object of the host's elements at an address.
//
//hamr:blocking
func StorePut(client, address uint64, element int, shape string, flags int, metadata string) (string, error) {
	return bridge.StorePut(client, backends.Address(address), element, shape, flags, metadata)
}

// StoreSeal seals an object.
//
//hamr:blocking
func StoreSeal(token uint64) (string, error) { return bridge.StoreSeal(token) }

// StoreAbort gives one up that was not sealed.
//
//hamr:blocking
func StoreAbort(token uint64) (string, error) { return bridge.StoreAbort(token) }

// StoreGet gets an object.
//
//hamr:blocking
func StoreGet(client uint64, id string, unsealed bool, milliseconds int) (string, error) {
	return bridge.StoreGet(client, id, unsealed, milliseconds)
}

// StoreDelete deletes an object.
//
//hamr:blocking
func StoreDelete(client uint64, id string, force bool) (string, error) {
	return bridge.StoreDelete(client, id, force)
}

// StoreRelease ends a lease.
//
//hamr:blocking
func StoreRelease(token uint64) int {
	bridge.StoreRelease(token)
	return 0
}

// StoreCall makes a client's call that is seldom made; arguments and reply are JSON.
//
//hamr:blocking
func StoreCall(client uint64, operation, arguments string) (string, error) {
	return bridge.StoreCall(client, operation, arguments)
}

// StoreEvents begins to be told of what happens to objects.
//
//hamr:blocking
func StoreEvents(client uint64) (string, error) { return bridge.StoreEvents(client) }

// StoreNextEvents returns events as JSON, or nothing after so many milliseconds.
//
//hamr:blocking
func StoreNextEvents(token uint64, milliseconds int) (string, error) {
	return bridge.StoreNextEvents(token, milliseconds)
}

// StoreEndEvents ends that.
//
//hamr:blocking
func StoreEndEvents(token uint64) int {
	bridge.StoreEndEvents(token)
	return 0
}
