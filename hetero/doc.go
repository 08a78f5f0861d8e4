// Package hetero schedules work of several devices around buffers, as CMSSW's CUDACore does:
// modules run on many goroutines, each may use a device, hands its products on without waiting
// for them, and falls back to the CPU where there is no device.
//
// A [Scheduler] stands over a [gobuffer.Runtime] and serves every backend that has streams. It
// keeps streams and events for reuse, and hands one out only when all its work is done.
package hetero
