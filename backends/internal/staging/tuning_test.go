package staging

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

var tester = Model{"Tester = 7", "13.0"}

// configured is an engine with settings, whose devices are testers; asked counts questions for these.
func configured(t *testing.T, settings map[string]string) (e *Engine, asked *int) {
	e, asked = &Engine{}, new(int)
	lookup := func(name string) string { return settings[name] }
	require.NoError(t, e.Configure("cuda", lookup, func(int) (Model, error) { *asked++; return tester, nil }))
	return e, asked
}

func thisMachine() machine {
	return machine{processorModel(), runtime.GOMAXPROCS(0), "cuda", tester}
}

// entry is a machine's part of a file.
func entry(m machine, choices ...string) string {
	lines := []string{"# a comment", "[tuning]"}
	for _, f := range m.facts() {
		lines = append(lines, f[0]+" = "+f[1])
	}
	if choices == nil {
		choices = []string{"up_from = 524288", "up_threads=3", "down_from = never", "down_threads = 1"}
	}
	return strings.Join(append(lines, choices...), "\n") + "\n"
}

// tuned is an engine whose file has a text, and what it says of that.
func tuned(t *testing.T, text string, more map[string]string) (e *Engine, said *[]string) {
	path := filepath.Join(t.TempDir(), "tuning.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	settings := map[string]string{TuningSetting: path}
	maps.Copy(settings, more)
	e, _ = configured(t, settings)
	said = new([]string)
	e.SetTrace(func(line string) { *said = append(*said, line) })
	return e, said
}

// reported is a row of a report, without its name.
func reported(e *Engine, name string) string {
	facts := e.Report(0)
	i := slices.IndexFunc(facts, func(f backends.StagingFact) bool { return f.Name == name })
	return facts[i].Value + ", " + facts[i].Source
}

func TestThreadsGoByTheSizeAndTheDirection(t *testing.T) {
	e := &Engine{}
	for _, of := range []struct{ size, up, down int }{{1 << 20, 4, 3}, {16<<20 - 1, 4, 3}, {16 << 20, 6, 5},
		{128<<20 - 1, 6, 5}, {128 << 20, 8, 6}, {1 << 30, 8, 6}} {
		assert.Equal(t, of.up, e.threads(0, of.size, true, false), of.size)
		assert.Equal(t, of.down, e.threads(0, of.size, false, false), of.size)
		assert.Equal(t, mostFresh, e.threads(0, of.size, false, true), of.size)
	}
	assert.Equal(t, 2, (&Engine{Threads: 2}).threads(0, 1<<30, true, true), "as chosen")
}

func TestATuningDecides(t *testing.T) {
	e, said := tuned(t, entry(thisMachine()), nil)
	assert.False(t, e.Serves(0, 524287, true))
	assert.True(t, e.Serves(0, 524288, true))
	assert.False(t, e.Serves(0, 1<<30, false), "never")
	assert.Equal(t, 3, e.threads(0, 1<<20, true, false))
	assert.Equal(t, 1, e.threads(0, 1<<20, false, false))
	assert.Equal(t, mostFresh, e.threads(0, 1<<20, false, true))
	assert.Equal(t, 4, e.threads(0, smallestTuned-1, true, false))
	assert.Equal(t, "524288, tuning", reported(e, "from_up"))
	assert.Equal(t, "never, tuning", reported(e, "from_down"))
	assert.Equal(t, "1, tuning", reported(e, "threads_down"))
	assert.Contains(t, reported(e, "tuning"), ", in force")
	require.Len(t, *said, 1)
	assert.Regexp(t, "^tuning of cuda device 0 of .*tuning.txt is used$", (*said)[0])
}

func TestTheEnvironmentWins(t *testing.T) {
	more := map[string]string{ThreadsSetting: "2", ChunkSetting: "1000", PinnedSetting: "12345"}
	e, said := tuned(t, entry(thisMachine()), more)
	assert.True(t, e.Serves(0, 1000, true))
	assert.True(t, e.Serves(0, 1<<20, false))
	assert.Equal(t, 2, e.threads(0, 1<<20, true, false))
	assert.Empty(t, *said, "nothing is left to be read for")
	for name, row := range map[string]string{"from_up": "1000, environment", "from_down": "1000, environment",
		"threads_up": "2, environment",
		"chunk":      "1000, environment", "pinned_limit": "12345, environment", "pinned_held": "0, "} {
		assert.Equal(t, row, reported(e, name), name)
	}
	e, _ = tuned(t, entry(thisMachine()), map[string]string{ThreadsSetting: "0"})
	assert.False(t, e.Serves(0, 1<<30, true))
	assert.Equal(t, "never, environment", reported(e, "from_up"))
	assert.Equal(t, "0, environment", reported(e, "threads_up"))
	e, _ = tuned(t, entry(thisMachine()), map[string]string{ChunkSetting: "0"})
	assert.Equal(t, "524288, tuning", reported(e, "from_up"))
	assert.Equal(t, "by size, environment", reported(e, "chunk"))
	e, _ = tuned(t, entry(thisMachine()), map[string]string{ThreadsSetting: "5"})
	assert.True(t, e.Serves(0, 524288, true), "the size is the tuning's")
	assert.Equal(t, 5, e.threads(0, 1<<20, true, false))
}

func TestWithoutATuningThereAreDefaults(t *testing.T) {
	other := thisMachine()
	other.model.Driver = "12.0"
	good := entry(thisMachine())
	for words, text := range map[string]string{
		"no [tuning]": "# nothing\n",
		"another machine, whose driver is \"12.0\", not \"13.0\"": entry(other),
		"line 1 is \"cpu = x\"":                                   "cpu = x\n" + good,
		"line 9 is \"half a lin\"": strings.TrimSpace(entry(thisMachine(), "up_from = 524288")) +
			"\nhalf a lin",
		"up_from is \"1\"":   strings.Replace(good, "524288", "1", 1),
		"up_threads is \"\"": entry(thisMachine(), "up_from = 524288"),
		"down_threads is \"many\"": strings.Replace(good,
			"down_threads = 1", "down_threads = many", 1),
		"down_from is \"99999999999999999999\"": strings.Replace(good, "never", "99999999999999999999", 1),
		"token too long":                        strings.Repeat("x", 1<<17),
		"line 1 is \"\\x00\\xff\"":              "\x00\xff\n",
	} {
		e, said := tuned(t, text, nil)
		assert.Equal(t, runtime.GOMAXPROCS(0) > 1, e.Serves(0, smallest, true), words)
		assert.False(t, e.Serves(0, smallest-1, true), words)
		assert.Equal(t, 4, e.threads(0, 1<<20, true, false), words)
		if assert.Len(t, *said, 1, words) {
			assert.Contains(t, (*said)[0], "is not used: ", words)
			assert.Contains(t, (*said)[0], words)
		}
		assert.Contains(t, reported(e, "tuning"), words)
		assert.Contains(t, reported(e, "threads_up"), ", default")
	}
}

func TestAFileOfSeveralMachines(t *testing.T) {
	other := thisMachine()
	other.processors++
	e, _ := tuned(t, entry(other)+"\n"+entry(thisMachine()), nil)
	assert.Equal(t, 3, e.threads(0, 1<<20, true, false))
}

func TestWhatIsNoFile(t *testing.T) {
	folder := t.TempDir()
	large := filepath.Join(folder, "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, largestFile+1))
	for path, words := range map[string]string{folder: "no file of at most", large: "no file of at most",
		folder + "/none": "there is no ", large + "/x": "not a directory",
		"0": "none is to be read"} {
		e, _ := configured(t, map[string]string{TuningSetting: path})
		assert.False(t, e.Serves(0, smallest-1, true))
		assert.Contains(t, reported(e, "tuning"), words, path)
	}
}

func TestAFileForEachMachine(t *testing.T) {
	home := t.TempDir()
	e, _ := configured(t, map[string]string{"HOME": home})
	path, _ := e.tuningFile(thisMachine())
	assert.Regexp(t, "^"+home+"/.config/hamr/tuning-[0-9a-f]{16}.txt$", path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(entry(thisMachine())), 0o600))
	assert.True(t, e.Serves(0, 524288, true))
	seen := map[string]bool{path: true}
	for i, change := range []func(*machine){
		func(m *machine) { m.cpu += "x" }, func(m *machine) { m.processors++ }, func(m *machine) { m.backend = "hip" },
		func(m *machine) { m.model.Name += "x" }, func(m *machine) { m.model.Driver += "x" }} {
		other := thisMachine()
		change(&other)
		path, _ := e.tuningFile(other)
		assert.False(t, seen[path], i)
		seen[path] = true
	}
	e, _ = configured(t, map[string]string{"HOME": home, "XDG_CONFIG_HOME": "/configuration"})
	path, _ = e.tuningFile(thisMachine())
	assert.Equal(t, "/configuration/hamr", filepath.Dir(path))
	e, _ = configured(t, map[string]string{"HOME": "", "XDG_CONFIG_HOME": "here"})
	path, words := e.tuningFile(thisMachine())
	assert.Equal(t, ", the user has no home", path+", "+words)
	t.Setenv(TuningSetting, "")
	e, _ = configured(t, map[string]string{"HOME": home})
	path, words = e.tuningFile(thisMachine())
	assert.Empty(t, path)
	assert.Contains(t, words, "none is to be read")
}

// TestSmallCopiesAskNothing counts questions, of which there is one for a device.
func TestSmallCopiesAskNothing(t *testing.T) {
	e, asked := configured(t, map[string]string{"HOME": t.TempDir()})
	for range 3 {
		e.Serves(0, smallestTuned-1, true)
		e.Gathers(1<<20, 100)
		e.threads(0, smallestTuned-1, true, false)
	}
	assert.Zero(t, *asked)
	for range 3 {
		e.Serves(0, smallestTuned, true)
		e.Serves(0, 1<<30, false)
	}
	assert.Equal(t, 1, *asked)
	e.Serves(1, 1<<30, false)
	assert.Equal(t, 2, *asked)
}

func TestADeviceWithoutAName(t *testing.T) {
	e := &Engine{}
	failed := errors.New("it is lost")
	require.NoError(t, e.Configure("cuda", func(string) string { return "" },
		func(int) (Model, error) { return Model{}, failed }))
	assert.Equal(t, runtime.GOMAXPROCS(0) > 1, e.Serves(0, smallest, true))
	assert.Equal(t, ", it is lost", reported(e, "tuning"))
}

// TestMeasuringChooses has threads copy while another one chooses.
func TestMeasuringChooses(t *testing.T) {
	e, _ := tuned(t, entry(thisMachine()), nil)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for range 100 {
				e.Serves(0, 1<<20, true)
				e.Report(0)
			}
		})
	}
	for i := range 100 {
		e.Tune(0, true, backends.StagingChoice{From: -1, Threads: 1 + i})
		e.Tune(0, false, backends.StagingChoice{From: 1 << 20, Threads: 2})
	}
	group.Wait()
	assert.False(t, e.Serves(0, 1<<30, true))
	assert.True(t, e.Serves(0, 1<<20, false))
	assert.False(t, e.Serves(0, 1<<20-1, false))
	assert.Equal(t, 100, e.threads(0, 1<<20, true, false))
	assert.Equal(t, "never, measuring", reported(e, "from_up"))
	assert.Contains(t, reported(e, "tuning"), ", measuring")
	e.Tune(0, true, backends.StagingChoice{})
	assert.Equal(t, 4, e.threads(0, 1<<20, true, false))
}

func TestSettingsThatAreNoNumbers(t *testing.T) {
	for _, name := range []string{ThreadsSetting, ChunkSetting, PinnedSetting} {
		for _, text := range []string{"many", "-1", "1.5", "99999999999999999999"} {
			err := (&Engine{}).Configure("cuda", func(asked string) string { return map[string]string{name: text}[asked] }, nil)
			assert.ErrorContains(t, err, fmt.Sprintf("%s is %q: a number", name, text))
		}
	}
}

func TestBeforeItIsConfigured(t *testing.T) {
	e := &Engine{}
	e.SetTrace(nil)
	assert.Equal(t, "by size, default", reported(e, "chunk"))
	assert.NoError(t, e.Configure("cuda", func(string) string { return "0" },
		func(int) (Model, error) { return tester, nil }))
	assert.Equal(t, "0, environment", reported(e, "pinned_limit"))
}
