// Package protocol is how clients and servers of a store talk: ids, errors, frames, and how fields are written into
// them. docs/store-protocol.md describes it. It knows neither clients nor servers.
package protocol
