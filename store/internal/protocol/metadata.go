package protocol

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

const (
	MostNested = 100 // arrays and objects of JSON in each other: Python's reader calls itself for each
	MostDigits = 640 // of a number: what Python reads however it is set
)

// MetadataWithin refuses what is no JSON that every client can read, or too much of it.
func MetadataWithin(metadata []byte, most int) error {
	if len(metadata) > most {
		value := fmt.Sprintf("%d bytes", len(metadata))
		return &ArgumentError{Argument: "metadata", Value: value, Accepted: fmt.Sprintf("at most %d", most)}
	}
	return CheckMetadata(metadata)
}

// MetadataOfAny refuses what is too much for any server.
func MetadataOfAny(metadata []byte) error {
	if len(metadata) <= LargestMetadata {
		return nil
	}
	return &ArgumentError{Argument: "metadata", Value: fmt.Sprintf("%d bytes", len(metadata)),
		Accepted: fmt.Sprintf("at most %d, or what the server's options say, up to %d", MostMetadata, LargestMetadata)}
}

// CheckMetadata refuses what a server does not take as metadata: what is no JSON, or JSON that some client could not
// read. Nothing at all is accepted.
func CheckMetadata(metadata []byte) error {
	if len(metadata) == 0 {
		return nil
	}
	refuse := func(accepted string) error {
		return &ArgumentError{Argument: "metadata", Value: fmt.Sprintf("%.40q", metadata), Accepted: accepted}
	}
	if !utf8.Valid(metadata) {
		return refuse("JSON in UTF-8")
	}
	if !json.Valid(metadata) {
		return refuse("JSON")
	}
	depth := 0
	for i := 0; i < len(metadata); i++ {
		switch b := metadata[i]; {
		case b == '"':
			end, whole := endOfString(metadata, i+1)
			if !whole {
				return refuse("JSON without halves of surrogate pairs")
			}
			i = end
		case b == '[' || b == '{':
			if depth++; depth > MostNested {
				return refuse(fmt.Sprintf("JSON of at most %d levels", MostNested))
			}
		case b == ']' || b == '}':
			depth--
		case '0' <= b && b <= '9':
			start := i
			for i+1 < len(metadata) && isOfNumber(metadata[i+1]) {
				i++
			}
			if i+1-start > MostDigits {
				return refuse(fmt.Sprintf("JSON with numbers of at most %d digits", MostDigits))
			}
		}
	}
	return nil
}

func isOfNumber(b byte) bool {
	return '0' <= b && b <= '9' || b == '.' || b == 'e' || b == 'E' || b == '+' || b == '-'
}

// endOfString returns where a string of valid JSON ends, and whether each surrogate in it is one of a pair.
func endOfString(metadata []byte, at int) (end int, whole bool) {
	for ; metadata[at] != '"'; at++ {
		if metadata[at] != '\\' {
			continue
		}
		at++
		if metadata[at] != 'u' {
			continue
		}
		first := escaped(metadata[at+1:])
		at += 4
		if first < 0xd800 || first > 0xdfff {
			continue
		}
		if first >= 0xdc00 || metadata[at+1] != '\\' || metadata[at+2] != 'u' {
			return at, false
		}
		//mutate:replace metadata may have halves of surrogate pairs
		//mutate:with second < 0xdc00 || second > 0xdfff => second > 0xffff
		if second := escaped(metadata[at+3:]); second < 0xdc00 || second > 0xdfff {
			return at, false
		}
		at += 6
	}
	return at, true
}

func escaped(digits []byte) uint64 {
	value, _ := strconv.ParseUint(string(digits[:4]), 16, 32)
	return value
}
