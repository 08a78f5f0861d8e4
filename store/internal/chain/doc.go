// Package chain is a list whose members have their neighbours in themselves.
package chain
