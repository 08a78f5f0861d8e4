// Package rtc calls vendors' compilers of kernels: NVRTC and hipRTC, which have the same functions under
// other names.
package rtc

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// EntryPoints are a compiler's functions. They return its own result, which is zero for success.
type EntryPoints struct {
	CreateProgram  uintptr // (*program, source, name, count, headers, names of headers)
	CompileProgram uintptr // (program, count, options)
	DestroyProgram uintptr // (*program)
	CodeSize, Code uintptr // what a device runs; zero if there is no such thing
	TextSize, Text uintptr // what a driver compiles further; likewise, and code may have it, too
	LogSize, Log   uintptr
	ErrorString    uintptr // (result) → its name; zero if there is none
}

// Header is a file that programs may include.
type Header struct{ Name, Text string }

// Compiler is a vendor's compiler that has been loaded.
type Compiler struct {
	EntryPoints
	API string // "nvrtc", as the names of its functions begin
}

// Compile returns code, and the text that was made on the way where there is one, or text alone where that is asked
// for. For a program that does not compile the error is a *backends.DeviceError with the compiler's Message.
func (c *Compiler) Compile(source, name string, headers []Header, options []string, text bool) (made backends.Code,
	err error) {
	var texts, names []string
	for _, h := range headers {
		texts, names = append(texts, h.Text), append(names, h.Name)
	}
	main, given := newStrings(source, name), newStrings(options...)
	included, called := newStrings(texts...), newStrings(names...)
	defer runtime.KeepAlive([]*cStrings{main, given, included, called})
	program := new(uintptr)
	if result := int32(dl.Call(c.CreateProgram, uintptr(unsafe.Pointer(program)), main.list[0], main.list[1],
		uintptr(len(headers)),
		included.address(), called.address())); result != 0 {
		return made, c.failure("CreateProgram", result, "")
	}
	handle := *program
	defer func() {
		*program = handle
		dl.Call(c.DestroyProgram, uintptr(unsafe.Pointer(program)))
	}()
	result := int32(dl.Call(c.CompileProgram, handle, uintptr(len(options)), given.address()))
	said, _ := c.read("GetProgramLog", handle, c.LogSize, c.Log)
	made.Log = strings.TrimSpace(strings.TrimRight(string(said), "\x00"))
	if result != 0 {
		return made, c.failure("CompileProgram", result, made.Log)
	}
	if text {
		made.Image, err = c.read("GetPTX", handle, c.TextSize, c.Text)
		return made, err
	}
	if made.Image, err = c.read("GetCode", handle, c.CodeSize, c.Code); err == nil && c.Text != 0 {
		made.Text, _ = c.read("GetPTX", handle, c.TextSize, c.Text) // options may have left none
	}
	return made, err
}

// read returns what one function writes, whose size another one tells.
func (c *Compiler) read(call string, program, size, get uintptr) ([]byte, error) {
	bytes := new(uintptr)
	if result := int32(dl.Call(size, program, uintptr(unsafe.Pointer(bytes)))); result != 0 || *bytes == 0 {
		return nil, c.failure(call+"Size", result, fmt.Sprintf("the size is %d", *bytes))
	}
	into := make([]byte, *bytes)
	if result := int32(dl.Call(get, program, uintptr(unsafe.Pointer(unsafe.SliceData(into))))); result != 0 {
		return nil, c.failure(call, result, "")
	}
	return into, nil
}

func (c *Compiler) failure(call string, result int32, message string) error {
	name := ""
	if c.ErrorString != 0 {
		name = text(dl.Call(c.ErrorString, uintptr(result)))
	}
	if name == "" {
		name = fmt.Sprintf("%s_RESULT_%d", strings.ToUpper(c.API), result)
	}
	return &backends.DeviceError{API: c.API, Call: c.API + call, Name: name, Code: int(result), Message: message}
}

// text returns the C string at an address.
func text(address uintptr) string {
	at := *(**byte)(unsafe.Pointer(&address))
	if at == nil {
		return ""
	}
	length := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(at), length)) != 0 {
		length++
	}
	return string(unsafe.Slice(at, length))
}

// cStrings are strings that end with a zero, and the list of their addresses.
type cStrings struct {
	texts [][]byte
	list  []uintptr
}

func newStrings(texts ...string) *cStrings {
	s := new(cStrings)
	for _, text := range texts {
		bytes := append([]byte(text), 0)
		s.texts = append(s.texts, bytes)
		s.list = append(s.list, uintptr(unsafe.Pointer(unsafe.SliceData(bytes))))
	}
	return s
}

func (s *cStrings) address() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s.list))) }
