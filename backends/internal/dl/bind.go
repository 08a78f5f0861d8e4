package dl

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/ebitengine/purego"
)

// MissingSymbolsError lists every function that a library lacks: an old driver lacks several at once.
type MissingSymbolsError struct {
	Library string
	Names   []string
}

func (e *MissingSymbolsError) Error() string {
	return fmt.Sprintf("%s lacks %s", e.Library, strings.Join(e.Names, ", "))
}

// Bind fills the struct that functions points to from the symbols of library.
// Fields tagged `dl:"symbol"` must be of type uintptr, for Call, or of a func
// type that purego can register; `dl:"symbol,optional"` leaves the field zero
// where the library has no such symbol. Fields without the tag are left alone.
// A misdeclared struct panics, as it is a mistake in the program. Every missing
// symbol is reported in one *MissingSymbolsError.
func Bind(library Library, functions any) error {
	pointer := reflect.ValueOf(functions)
	if pointer.Kind() != reflect.Pointer || pointer.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("dl.Bind: want a pointer to a struct, not %T", functions))
	}
	target := pointer.Elem()
	missing := &MissingSymbolsError{Library: library.Path()}
	for i := range target.NumField() {
		declared := target.Type().Field(i)
		tag, ok := declared.Tag.Lookup("dl")
		if !ok {
			continue
		}
		symbol, option, _ := strings.Cut(tag, ",")
		if symbol == "" || (option != "" && option != "optional") || !declared.IsExported() {
			panic(fmt.Sprintf("dl.Bind: field %s of %T has the tag %q", declared.Name, functions, tag))
		}
		address, err := library.Symbol(symbol)
		if err != nil {
			if option != "optional" {
				missing.Names = append(missing.Names, symbol)
			}
			continue
		}
		switch field := target.Field(i); field.Kind() {
		case reflect.Uintptr:
			field.SetUint(uint64(address))
		case reflect.Func:
			purego.RegisterFunc(field.Addr().Interface(), address)
		default:
			panic(fmt.Sprintf("dl.Bind: field %s of %T is neither uintptr nor a function", declared.Name, functions))
		}
	}
	if len(missing.Names) > 0 {
		return missing
	}
	return nil
}

// SymbolOf returns the name of an entry point, which is a field of functions, a pointer to a struct that Bind has
// filled; "" if it is none of these.
func SymbolOf(functions any, address uintptr) string {
	v := reflect.ValueOf(functions).Elem()
	for i := range v.NumField() {
		if v.Field(i).Uint() == uint64(address) {
			symbol, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("dl"), ",")
			return symbol
		}
	}
	return ""
}
