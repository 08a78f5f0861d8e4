package gobuffer_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// What the first one held is waited for, though the second one is idle.
func TestAStreamHasTheHandleOfOneThatHasEnded(t *testing.T) {
	for _, al := range []backends.Allocator{backends.CUDA, backends.CUDAHost, backends.CUDAUnified} {
		for _, device := range []int{0, 1} {
			if device == 1 && al != backends.CUDAHost {
				continue
			}
			t.Run(fmt.Sprintf("%s, new one of device %d", al, device), func(t *testing.T) {
				o := reusesBlocks
				o.ReuseHandles = true
				w := endingWorld(t, 2, o)
				a, end := w.ofEnding(al) // kernel pending on s that sets after
				s := a.Stream()
				view, err := a.Slice(0, 0, before.shape[0], 1)
				require.NoError(t, err)
				require.NoError(t, view.SetStream(0, gobuffer.Async))
				value := w.scalar(before.kind, 7)
				require.NoError(t, a.Fill(value)) // raw on s
				closeAll(t, value)
				closeAll(t, a)
				end()
				again := w.stream(w.cuda, device)
				require.Equal(t, s, again)
				require.NoError(t, view.SetStream(again, gobuffer.Async))
				got := w.read(view)
				for i := range got.count() {
					require.Equal(t, element(before.kind, 7), got.at(i))
				}
				closeAll(t, view)
				require.NoError(t, w.cuda.DestroyStream(device, again))
				require.NoError(t, w.runtime.ReleasePostponed())
				assert.Zero(t, w.kept())
			})
		}
	}
}

// Somebody enqueues more, and goes, while another waits for what was there.
func TestWorkThatComesDuringAWaitIsRemembered(t *testing.T) {
	for _, al := range []backends.Allocator{backends.CUDA, backends.CUDAHost} {
		t.Run(al.String(), func(t *testing.T) {
			w := endingWorld(t, 1, reusesBlocks)
			a, _ := w.ofEnding(al)
			s := a.Stream()
			view, err := a.Slice(0, 0, before.shape[0], 1)
			require.NoError(t, err)
			require.NoError(t, view.SetStream(0, gobuffer.Async))
			w.setSeven(a)
			once := false
			w.e.afterSD = func() {
				if !once {
					once = true
					w.kernel(w.cuda, 0, s, a, after) // another goroutine's, by a
					closeAll(t, a)
				}
			}
			w.read(view)
			w.e.afterSD = nil
			require.True(t, once)
			assert.Equal(t, after.data, w.read(view).data)
			closeAll(t, view)
			require.NoError(t, w.runtime.ReleasePostponed())
		})
	}
}

func TestPageLockedMemoryIsLeftByAnotherDevicesStream(t *testing.T) {
	w := endingWorld(t, 2, reusesBlocks)
	a := w.array(onStream(backends.CUDAHost, 0), before)
	s := w.stream(w.cuda, 1)
	require.NoError(t, a.Before(s))
	w.kernel(w.cuda, 1, s, a, after)
	require.NoError(t, w.cuda.DestroyStream(1, s))
	require.NoError(t, a.Memory().LeaveLate(s))
	assert.Equal(t, after.data, w.read(a).data)
	closeAll(t, a)
	require.NoError(t, w.runtime.ReleasePostponed())
}

func TestViewsOnStreamsThatEndInManyThreads(t *testing.T) {
	for _, al := range []backends.Allocator{backends.CUDA, backends.CUDAHost, backends.CUDAUnified} {
		for _, o := range []backendtest.FakeOptions{{Strict: true, Reuses: true, MaxDelay: 20 * time.Microsecond},
			{Manual: true, Strict: true, Reuses: true}} {
			t.Run(fmt.Sprint(al, o.Manual), func(t *testing.T) {
				w := endingWorld(t, 2, o)
				s := w.stream(w.cuda, 0)
				root := w.array(onStream(al, s), counting(arrayiface.Int32, 8, 6))
				w.setSeven(root)
				var group sync.WaitGroup
				for g := range 8 {
					group.Add(1)
					go func() {
						defer group.Done()
						r := rand.New(rand.NewPCG(uint64(g), 5))
						own := w.stream(w.cuda, 0)
						for i := range 300 {
							v, err := root.Slice(0, g, g+1, 1)
							if !assert.NoError(t, err) {
								return
							}
							switch r.IntN(3) {
							case 0:
								assert.NoError(t, v.SetStream(0, gobuffer.Async))
							case 1:
								assert.NoError(t, v.SetStream(own, gobuffer.Async))
							}
							value := w.scalar(arrayiface.Int32, 1+(i+g)%100)
							assert.NoError(t, v.Fill(value))
							closeAll(t, value)
							switch r.IntN(6) {
							case 0:
								_, _, err = v.Covering()
								assert.NoError(t, err)
							case 1:
								_, err = v.Pending()
								assert.NoError(t, err)
							case 2:
								assert.NoError(t, v.Synchronize())
							case 3:
								h, err := v.Access(backends.SpaceCUDA, 0)
								if assert.NoError(t, err) {
									assert.NoError(t, h.Release())
								}
							case 4:
								b, err := v.Copy(onStream(backends.CUDA, own), arrayiface.Int32)
								if assert.NoError(t, err) {
									closeAll(t, b)
								}
							}
							if r.IntN(8) == 0 {
								h, err := v.Access(backends.SpaceHost, -1)
								if assert.NoError(t, err) {
									want := element(arrayiface.Int32, 1+(i+g)%100)
									assert.Equal(t, want, hostBytes(h.Address(), 4), "goroutine %d turn %d", g, i)
									assert.NoError(t, h.Release())
								}
							}
							closeAll(t, v)
							if r.IntN(4) == 0 {
								assert.NoError(t, w.cuda.DestroyStream(0, own))
								own = w.stream(w.cuda, 0)
							}
						}
					}()
				}
				group.Wait()
				closeAll(t, root)
				require.NoError(t, w.runtime.ReleasePostponed())
			})
		}
	}
}
