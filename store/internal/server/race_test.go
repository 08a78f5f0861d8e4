//go:build race

package server

func init() { slower = 20 } // the race detector
