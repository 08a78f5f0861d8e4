// Package hetero schedules work of several devices around buffers, as CMSSW's CUDACore does:
// modules run on many goroutines, each may use a device, hands its products on without waiting
// for them, and falls back to the CPU where there is no device. It serves every backend that has
// streams, and waits for none of them.
//
// # A chain of modules
//
// A [Scheduler] stands over a [gobuffer.Runtime]. A [Chooser] decides once for each chain, and a
// module works in a [Context]:
//
//	scheduler, err := hetero.Default()
//	…
//	chooser, err := scheduler.NewChooser(hetero.ChooserOptions{})
//	…
//	token, err := chooser.Choose(number) // nil: there is no device
//	if hetero.DeviceFilter(token) {
//		ctx, err := scheduler.Begin(token)
//		…
//		launch(ctx.Stream(), hits) // enqueues, and returns
//		clusters, err := hetero.Wrap(ctx, hits)
//		…
//		err = ctx.End()
//	}
//
// The next module begins its context from the product, and has the same stream if it is the first;
// others have streams of their own, at the same time. [Get] has the context's stream wait for the
// product, only if that was made on another stream and is pending:
//
//	ctx, err := scheduler.Begin(clusters)
//	…
//	hits, err := hetero.Get(ctx, clusters)
//
// What has to wait, as a module that reads on the CPU what a device writes, has two parts. The first
// enqueues; the second runs when the channel says so, with the error of the work or of a context that
// was cancelled:
//
//	over := ctx.Done(goContext)
//	…
//	if err := <-over; err != nil {
//		return err
//	}
//
// [Switch] and [FirstAvailable] choose between a device's path and the CPU's before and after. A
// product of another device is a [DeviceMismatchError], unless [Migrate] moves it.
// The program examples/events has all of it.
//
// # Who owns what
//
// A stream goes back to the Scheduler's cache when each [Token], [Context] and [Product] that names it
// was released or ended, with whatever work it has; it is handed out again when that is over. The same
// holds of events, and of a [CachingAllocator]'s blocks save on the stream that used them last. What a
// product wraps stays its maker's, to be given back when nobody uses the product any more.
// [Scheduler.Trim] destroys streams: buffers that name one, see [Context.Options], are closed before,
// or [Scheduler.OnRetire] sees to them.
//
// # CMSSW's names
//
//	CUDADeviceChooser, CUDAToken, CUDADeviceFilter   NewChooser, Token, DeviceFilter
//	SwitchProducer, a fallback producer              Switch, FirstAvailable
//	CUDAScopedContext, its stream                    Begin, Context.Stream
//	CUDA<T>, wrap, get                               Product, Wrap, Get
//	ExternalWork: acquire, doneWaiting, produce      Context.Done and what receives from it
//	beginStreamCUDA                                  Scheduler.OnDevice
//	the caches of events and streams                 Record, GiveEvent, TakeStream, GiveStream
//	the caching device and host allocators           NewCachingAllocator
//
// # Forks
//
// A child that was forked has no part in its parent's streams and events: the backends' Probe answers
// a *[backends.ForkedError] there, and every Scheduler of the child has caches of its own.
package hetero
