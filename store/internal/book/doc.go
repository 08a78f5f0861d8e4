// Package book is a client's book: a file of what a store's server has told its client, from which the next server
// learns what it cannot know by itself. It knows neither clients nor servers.
package book
