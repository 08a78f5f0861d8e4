package gobuffer_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hamr/backends"
	"hamr/backends/all"
	"hamr/backends/backendtest"
)

var (
	modelRuns    = flag.Int("model.runs", 40, "random walks of TestModel in each mode")
	modelSteps   = flag.Int("model.steps", 150, "steps of each walk")
	modelSeed    = flag.Uint64("model.seed", 0, "seed of the first walk; 0 takes one at random")
	modelMode    = flag.String("model.mode", "", "the one mode to try")
	modelWithout = flag.String("model.without", "",
		"steps to leave out, separated by commas, and rules: \"pinned elsewhere\", \"released handles\"")
	modelFaultRuns = flag.Int("model.faults", 8, "walks of TestModelWithEachSingleFault in each mode")
	modelShrink    = flag.Int("model.shrink", 2000, "walks to spend on making a failing one short")
)

// modelOptions says on what devices a walk is made.
type modelOptions struct {
	backendtest.FakeOptions
	of     string         // the name of a runtime of the program's own, in place of the first Fake
	faults bool           // calls fail now and then
	single *singleFault   // or one does
	made   map[string]int // counts the calls that could, by runtime and kind
}

var manual = backendtest.FakeOptions{Manual: true, FreeWaits: true, LateMemory: true}

// modelModes are by name, which -model.mode takes.
var modelModes = map[string]modelOptions{
	"manual": {FakeOptions: manual},
	"strict": {FakeOptions: backendtest.FakeOptions{Manual: true, FreeWaits: true, LateMemory: true,
		Strict: true}},
	"frees do not wait": {FakeOptions: backendtest.FakeOptions{Manual: true, LateMemory: true, Strict: true}},
	"no kernels": {FakeOptions: backendtest.FakeOptions{Manual: true, FreeWaits: true, LateMemory: true,
		Strict: true, NoConvert: true}},
	"reuse": {FakeOptions: backendtest.FakeOptions{Manual: true, FreeWaits: true, Reuses: true,
		LateMemory: true, Strict: true}},
	"growth": {FakeOptions: backendtest.FakeOptions{Manual: true, LateMemory: true, Strict: true, Grows: 160}},
	"growth, waits": {FakeOptions: backendtest.FakeOptions{Manual: true, FreeWaits: true, LateMemory: true,
		Grows: 4096, Memory: 8192}},
	"growth, faults": {FakeOptions: backendtest.FakeOptions{Manual: true, LateMemory: true, Strict: true, Grows: 160},
		faults: true},
	"handles again": {FakeOptions: backendtest.FakeOptions{Manual: true, LateMemory: true, Strict: true,
		ReuseHandles: true}},
	"no peers": {FakeOptions: backendtest.FakeOptions{Manual: true, FreeWaits: true, LateMemory: true,
		NoPeers: true}},
	"little memory": {FakeOptions: backendtest.FakeOptions{Manual: true, FreeWaits: true, LateMemory: true,
		Memory: 900}},
	"delays": {FakeOptions: backendtest.FakeOptions{FreeWaits: true, LateMemory: true, Strict: true,
		MaxDelay: 20 * time.Microsecond}},
	"mapped": {FakeOptions: backendtest.FakeOptions{Manual: true, LateMemory: true, Strict: true,
		NoConvert: true, Mapped: true}},
	"mapped, kernels": {FakeOptions: backendtest.FakeOptions{Manual: true, FreeWaits: true, LateMemory: true,
		Mapped: true}},
	"platforms": {FakeOptions: backendtest.FakeOptions{Manual: true, LateMemory: true, Strict: true,
		Platforms: 2}},
	"one thread":  {FakeOptions: backendtest.FakeOptions{Synchronous: true, OneThread: true}},
	"synchronous": {FakeOptions: backendtest.FakeOptions{Synchronous: true}},
	"faults":      {FakeOptions: manual, faults: true},
	"faults, reuse": {FakeOptions: backendtest.FakeOptions{Manual: true, Reuses: true, LateMemory: true, Strict: true},
		faults: true},
	"faults, strict": {FakeOptions: backendtest.FakeOptions{Manual: true, LateMemory: true, Strict: true,
		NoConvert: true}, faults: true},
}

func init() {
	for _, name := range tried() {
		modelModes[name] = modelOptions{FakeOptions: modelModes["strict"].FakeOptions, of: name}
		modelModes[name+", faults"] = modelOptions{FakeOptions: modelModes["strict"].FakeOptions, of: name, faults: true}
	}
}

// tried are the runtimes that this build of the program has and tests can look into.
func tried() (names []string) {
	for _, b := range all.New() {
		if d, ok := b.(backendtest.Device); ok {
			names = append(names, d.Name())
		}
	}
	return names
}

// make returns the two runtimes of a walk.
func (o modelOptions) make() (list []backendtest.Device) {
	o.Devices = 2
	cuda, hip := o.FakeOptions, o.FakeOptions
	cuda.Space, hip.Space = backends.SpaceCUDA, backends.SpaceHIP
	for _, b := range all.New() {
		if b.Name() == o.of {
			list = append(list, b.(backendtest.Device))
		}
	}
	if list == nil {
		list = append(list, backendtest.NewFake(cuda))
	}
	return append(list, backendtest.NewFake(hip))
}

// runtimes are the names of what make returns.
func (o modelOptions) runtimes() []string {
	if o.of != "" {
		return []string{o.of, "hip"}
	}
	return []string{"cuda", "hip"}
}

func (o modelOptions) places(devices int) []place { return placesOf(devices, o.runtimes()...) }

// TestModel walks at random: arrays that share memory on two devices of two runtimes,
// with streams of their own, and foreign kernels on these; the same is done to plain
// slices of Go. What the elements are is compared by kernels and by the host, each
// on the way that the package's rules say is ordered.
func TestModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	t.Logf("%d runs of %d steps in each mode from seed %d on", *modelRuns, *modelSteps, seed)
	for name, o := range modelModes {
		if *modelMode != "" && *modelMode != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := map[string]int{}
			for i := range *modelRuns {
				c, walk := plan(o, seed+uint64(i), *modelSteps)
				found := try(t, o, c, walk)
				if found == nil {
					continue
				}
				if seen[found.class]++; seen[found.class] > 1 {
					continue
				}
				short := shorten(func(walk []step) *finding { return try(t, o, c, walk) }, walk, found)
				t.Errorf("%s\nThe shortest walk that fails so, "+
					"of -model.mode='%s' -model.seed=%d -model.runs=1 -model.steps=%d:\n%s",
					strings.Join(short.messages, "\n"), name, seed+uint64(i), *modelSteps, strings.Join(short.log, "\n"))
			}
			for class, times := range seen {
				t.Logf("%d of %d: %s", times, *modelRuns, class)
			}
		})
	}
}

// step is what to do; all its choices follow from the seed and the state that it finds,
// so that a walk can be shortened by leaving steps out.
type step struct {
	kind int
	seed uint64
}

// plan makes a walk with a character of its own: few or many arrays, streams and places,
// and of some kinds of steps more than of others. So states are reached that are rare in
// walks that do a little of everything.
func plan(o modelOptions, seed uint64, count int) (c character, walk []step) {
	random := rand.New(rand.NewPCG(seed, 0))
	c = character{arrays: 1 + random.IntN(mostArrays), streams: 1 + random.IntN(mostStreams), places: o.places(2)}
	random.Shuffle(len(c.places), func(i, j int) { c.places[i], c.places[j] = c.places[j], c.places[i] })
	if random.IntN(3) > 0 {
		c.places = c.places[:1+random.IntN(4)]
	}
	var kinds []int
	for i, k := range stepKinds {
		weight := k.weight * [...]int{0, 1, 1, 4}[random.IntN(4)]
		if k.name == "make" {
			weight = k.weight
		}
		for range weight {
			if !left(k.name) {
				kinds = append(kinds, i)
			}
		}
	}
	for range count {
		walk = append(walk, step{kinds[random.IntN(len(kinds))], random.Uint64()})
	}
	return c, walk
}

// character is what all steps of a walk have in common.
type character struct {
	arrays, streams int
	places          []place // where arrays are made and moved to
	hurried         bool    // the stream of what was closed runs ahead of all others
}

func left(name string) bool { return slices.Contains(strings.Split(*modelWithout, ","), name) }

// finding is how a walk failed.
type finding struct {
	class    string // the message that says most, without its numbers
	messages []string
	log      []string
}

// try makes one walk; nil is success.
func try(t *testing.T, o modelOptions, c character, walk []step) *finding {
	return attempt(t, o, c, func(w *modelWorld) {
		for _, x := range walk {
			w.step(x)
		}
	})
}

// attempt has run do something in a world of its own, and ends that.
func attempt(t *testing.T, o modelOptions, c character, run func(w *modelWorld)) *finding {
	s := &trial{TB: t}
	var log []string
	s.protected(func() {
		w := newModelWorld(s, o, c)
		defer func() { log = w.log }()
		run(w)
		w.check()
		w.finish()
	})
	if len(s.messages) == 0 {
		return nil
	}
	first := s.messages[0]
	for _, m := range s.messages {
		if strings.HasPrefix(m, "violation") { // says more than the wrong values that come of it
			first = m
			break
		}
	}
	return &finding{class(first), s.messages, log}
}

// shorten leaves out steps for as long as the walk fails in the same way.
func shorten(try func([]step) *finding, walk []step, found *finding) *finding {
	left := *modelShrink
	for size := max(len(walk)/2, 1); size > 0 && left > 0; {
		shrunk := false
		for at := 0; at < len(walk) && left > 0; left-- {
			fewer := slices.Concat(walk[:at], walk[min(at+size, len(walk)):])
			if f := try(fewer); f != nil && f.class == found.class {
				walk, found, shrunk = fewer, f, true
			} else {
				at += size
			}
		}
		if !shrunk || size > len(walk) {
			size /= 2
		}
	}
	return found
}

var changing = regexp.MustCompile(`0x[0-9a-f]+|-?\d+|\[.*\]|\{.*`)

// class is a message without what differs from one walk to the next.
func class(message string) string {
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	return changing.ReplaceAllString(message, "#")
}

// trial stands in for the test that one walk is, so that its failure can be looked at.
type trial struct {
	testing.TB
	mutex    sync.Mutex
	messages []string
}

// stopped is what FailNow panics with.
type stopped struct{}

func (*trial) Helper()          {}
func (*trial) Cleanup(func())   {}
func (*trial) Log(...any)       {}
func (s *trial) FailNow()       { panic(stopped{}) }
func (s *trial) Failed() bool   { s.mutex.Lock(); defer s.mutex.Unlock(); return len(s.messages) > 0 }
func (s *trial) Error(a ...any) { s.Errorf("%s", fmt.Sprint(a...)) }

func (s *trial) Errorf(format string, arguments ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.messages = append(s.messages, brief(fmt.Sprintf(format, arguments...)))
}

func (s *trial) Fatalf(format string, arguments ...any) {
	s.Errorf(format, arguments...)
	s.FailNow()
}

// brief is testify's message without its trace.
func brief(message string) string {
	_, said, ok := strings.Cut(message, "Error:")
	if !ok {
		return message
	}
	said, about, _ := strings.Cut(said, "Messages:")
	said, _, _ = strings.Cut(said, "\n\tTest:")
	return strings.Join(strings.Fields(about+" "+said), " ")
}

// protected notes a panic as a failure: memory that was freed cannot be touched.
func (s *trial) protected(walk func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() {
			if p := recover(); p != nil && p != any(stopped{}) {
				s.Errorf("panic: %v", p)
			}
		}()
		debug.SetPanicOnFault(true)
		walk()
	}()
	<-over
}
