package pyhamr

import (
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// The replies of these functions are texts; what begins with "!" is an error of the store's, as JSON.
// Those that ask a server take a number of the call's, which is Python's choice: on the thread that
// handles signals they reply "?" after a while, and StoreProceed or StoreStop goes on with it. What they
// make has that number, too.

// StoreServe starts a server of the store, which has the number; options are JSON, the reply is its path.
//
//hamr:blocking
func StoreServe(number uint64, options string) (string, error) {
	return bridge.StoreServe(number, options)
}

// StoreServed returns a server's figures as JSON.
//
//hamr:blocking
func StoreServed(token uint64) (string, error) { return bridge.StoreServed(token) }

// StoreEndServer ends a server.
//
//hamr:blocking
func StoreEndServer(token uint64) (string, error) { return bridge.StoreEndServer(token) }

// StoreConnect connects to a server; the reply is its path.
//
//hamr:blocking
func StoreConnect(call uint64, path string) (string, error) { return bridge.StoreConnect(call, path) }

// StoreProceed waits for a call that has not ended.
//
//hamr:blocking
func StoreProceed(call uint64) (string, error) { return bridge.StoreProceed(call) }

// StoreStop ends a call whose reply nobody is to have.
//
//hamr:blocking
func StoreStop(call uint64) int {
	bridge.StoreStop(call)
	return 0
}

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
func StoreCreate(call, client uint64, element int, shape string, allocator, device, flags int, metadata string) (string, error) {
	return bridge.StoreCreate(call, client, element, shape, backends.Allocator(allocator), device, flags, metadata)
}

// StorePut makes and seals an object of the host's elements at an address.
//
//hamr:blocking
func StorePut(call, client, address uint64, element int, shape string, flags int, metadata string) (string, error) {
	return bridge.StorePut(call, client, backends.Address(address), element, shape, flags, metadata)
}

// StoreSeal seals an object, of which nobody has the elements where alone is set.
//
//hamr:blocking
func StoreSeal(call, token uint64, alone bool) (string, error) {
	return bridge.StoreSeal(call, token, alone)
}

// StoreAbort gives one up that was not sealed.
//
//hamr:blocking
func StoreAbort(call, token uint64) (string, error) { return bridge.StoreAbort(call, token) }

// StoreGet gets an object.
//
//hamr:blocking
func StoreGet(call, client uint64, id string, unsealed bool, milliseconds int) (string, error) {
	return bridge.StoreGet(call, client, id, unsealed, milliseconds)
}

// StoreDelete deletes an object.
//
//hamr:blocking
func StoreDelete(call, client uint64, id string, force bool) (string, error) {
	return bridge.StoreDelete(call, client, id, force)
}

// StoreDiscard deletes an object that was made and nobody is to know of. It waits for nobody.
//
//hamr:blocking
func StoreDiscard(client uint64, id string) int {
	bridge.StoreDiscard(client, id)
	return 0
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
func StoreCall(call, client uint64, operation, arguments string) (string, error) {
	return bridge.StoreCall(call, client, operation, arguments)
}

// StoreEvents begins to be told of what happens to objects.
//
//hamr:blocking
func StoreEvents(call, client uint64) (string, error) { return bridge.StoreEvents(call, client) }

// StoreNextEvents returns events as JSON, or nothing after so many milliseconds.
//
//hamr:blocking
func StoreNextEvents(call, token uint64, milliseconds int) (string, error) {
	return bridge.StoreNextEvents(call, token, milliseconds)
}

// StoreEndEvents ends that.
//
//hamr:blocking
func StoreEndEvents(token uint64) int {
	bridge.StoreEndEvents(token)
	return 0
}
