//go:build race

package store

func init() { slower = 20 } // the race detector
