package staging

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"hamr/backends"
)

// smallestTuned is the smallest copy that measuring may find worth staging. Smaller ones never read a file.
const smallestTuned = 512 << 10

// largestFile is more than a file of many machines has.
const largestFile = 1 << 20

// Model is what devices have in common that are tuned alike.
type Model struct{ Name, Driver string }

// machine is what a tuning is good for.
type machine struct {
	cpu        string
	processors int // that the process may use
	backend    string
	model      Model
}

// facts are the lines of a file that name the machine.
func (m machine) facts() [][2]string {
	return [][2]string{{"cpu", m.cpu}, {"processors", strconv.Itoa(m.processors)}, {"backend", m.backend},
		{"device", m.model.Name}, {"driver", m.model.Driver}}
}

// tuning is what is known of a device.
type tuning struct {
	up, down backends.StagingChoice
	machine  machine
	file     string
	state    string // of the file, in words; "" if it was taken
	measured bool   // by Tune, not by a file
}

// choice returns what measuring found, zeros if nothing.
func (e *Engine) choice(device int, up bool) backends.StagingChoice {
	if e.lookup == nil || e.Threads > 0 && e.Chunk > 0 {
		return backends.StagingChoice{}
	}
	t := e.tuningOf(device)
	if up {
		return t.up
	}
	return t.down
}

// tuningOf reads a device's file at the first call for it.
func (e *Engine) tuningOf(device int) *tuning {
	if e.lookup == nil {
		return &tuning{}
	}
	e.tuningMutex.Lock()
	defer e.tuningMutex.Unlock()
	t, ok := e.tunings[device]
	if !ok {
		t = e.readTuning(device)
		if e.tunings == nil {
			e.tunings = map[int]*tuning{}
		}
		e.tunings[device] = t
		if f := e.trace.Load(); f != nil {
			words := "of " + t.file + " is used"
			if t.state != "" {
				words = "is not used: " + t.state
			}
			(*f)(fmt.Sprintf("tuning of %s device %d %s", e.backend, device, words))
		}
	}
	return t
}

// Tune implements backends.Staging.
func (e *Engine) Tune(device int, up bool, choice backends.StagingChoice) {
	e.tuningOf(device)
	e.tuningMutex.Lock()
	defer e.tuningMutex.Unlock()
	t := *e.tunings[device] // others may be reading it
	t.measured = true
	if up {
		t.up = choice
	} else {
		t.down = choice
	}
	e.tunings[device] = &t
}

// SetTrace implements backends.Staging.
func (e *Engine) SetTrace(f func(line string)) {
	if f == nil {
		e.trace.Store(nil)
		return
	}
	e.trace.Store(&f)
}

func (e *Engine) readTuning(device int) *tuning {
	t := &tuning{}
	model, err := e.model(device)
	if err != nil {
		t.state = err.Error()
		return t
	}
	model.Name = strings.TrimSpace(model.Name)
	t.machine = machine{processorModel(), runtime.GOMAXPROCS(0), e.backend, model}
	if t.file, t.state = e.tuningFile(t.machine); t.file == "" {
		return t
	}
	text, err := readAtMost(t.file, largestFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.state = "there is no " + t.file
	case err != nil:
		t.state = err.Error()
	default:
		if t.up, t.down, err = parseTuning(text, t.machine); err != nil {
			t.state = t.file + ": " + err.Error()
		}
	}
	return t
}

// readAtMost does not wait for a writer if the name is a pipe's.
func readAtMost(path string, size int64) ([]byte, error) {
	known, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !known.Mode().IsRegular() || known.Size() > size {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", path, size)
	}
	return os.ReadFile(path)
}

// tuningFile returns the file for a machine, or why there is none.
func (e *Engine) tuningFile(m machine) (path, problem string) {
	switch chosen := e.lookup(TuningSetting); chosen {
	case "0":
		return "", TuningSetting + " says that none is to be read"
	case "":
		if _, set := os.LookupEnv(TuningSetting); set {
			return "", TuningSetting + " says that none is to be read"
		}
	default:
		return chosen, ""
	}
	folder := e.lookup("XDG_CONFIG_HOME")
	if !filepath.IsAbs(folder) {
		home := e.lookup("HOME")
		if !filepath.IsAbs(home) {
			return "", "the user has no home"
		}
		folder = filepath.Join(home, ".config")
	}
	key := fnv.New64a()
	for _, fact := range m.facts() {
		_, _ = fmt.Fprintf(key, "%s\n", fact[1])
	}
	return filepath.Join(folder, "hamr", fmt.Sprintf("tuning-%016x.txt", key.Sum64())), ""
}

// parseTuning finds a machine's choices in a file: lines "name = value" behind a line "[tuning]" for
// each machine. The error says what is wrong, or that the file is of other machines.
func parseTuning(text []byte, m machine) (up, down backends.StagingChoice, err error) {
	var entries []map[string]string
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		name, value, isPair := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line == "[tuning]":
			entries = append(entries, map[string]string{})
		case isPair && len(entries) > 0:
			entries[len(entries)-1][strings.TrimSpace(name)] = strings.TrimSpace(value)
		default:
			return up, down, fmt.Errorf("line %d is %q: a name, = and a value are needed behind [tuning]", number, line)
		}
	}
	if err := lines.Err(); err != nil {
		return up, down, err
	}
	other := "it has no [tuning]"
	for _, entry := range entries {
		if other = m.unlike(entry); other != "" {
			continue
		}
		if up, err = parseChoice(entry, "up"); err == nil {
			down, err = parseChoice(entry, "down")
		}
		if err != nil { // half of it would be neither one nor the other
			return backends.StagingChoice{}, backends.StagingChoice{}, err
		}
		return up, down, nil
	}
	return up, down, errors.New(other)
}

// unlike says what of an entry is another machine's.
func (m machine) unlike(entry map[string]string) string {
	for _, fact := range m.facts() {
		if entry[fact[0]] != fact[1] {
			return fmt.Sprintf("it is of another machine, whose %s is %q, not %q", fact[0], entry[fact[0]], fact[1])
		}
	}
	return ""
}

// never is what a file has for a size that is never reached.
const never = "never"

func parseChoice(entry map[string]string, direction string) (c backends.StagingChoice, err error) {
	from, threads := direction+"_from", direction+"_threads"
	if entry[from] == never {
		c.From = -1
	} else if c.From, err = strconv.Atoi(entry[from]); err != nil || c.From < smallestTuned {
		return c, fmt.Errorf("%s is %q: %s or a number of bytes from %d on is needed", from, entry[from], never,
			smallestTuned)
	}
	if c.Threads, err = strconv.Atoi(entry[threads]); err != nil || c.Threads < 1 {
		return c, fmt.Errorf("%s is %q: a number from 1 on is needed", threads, entry[threads])
	}
	return c, nil
}

// processorModel is in the system's words, or Go's where that has none.
func processorModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer file.Close()
	first := make([]byte, 4096) // the others are alike, and take long where there are many
	n, _ := file.Read(first)
	for line := range strings.Lines(string(first[:n])) {
		name, value, _ := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); name == "model name" || name == "Model" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
