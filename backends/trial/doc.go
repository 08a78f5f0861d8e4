//go:build trial

// Package trial is a runtime that no vendor has: host memory behind opaque handles, queues
// that keep no order, memory that the host must map, and frees that do not wait. It has no
// kernels. It stands for what OpenCL, SYCL and OpenMP ask of the core, misbehaves wherever
// the contract lets it, and notes every misuse.
//
// It is built only with the tag trial, since no user needs it.
package trial
