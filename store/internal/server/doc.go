// Package server keeps the objects of a store and answers its clients. It knows them by their packets alone.
package server
