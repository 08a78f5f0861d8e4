package groups

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// cursor reads JSON that is known to be valid: encoding/json's own reader would be 4 % of the library.
type cursor struct {
	text string
	at   int
}

var errNotJSON = errors.New("it is not JSON in UTF-8")

// cursorOf is at the beginning of a text from anybody.
func cursorOf(text []byte) (*cursor, error) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil, errNotJSON
	}
	return &cursor{text: string(text)}, nil
}

// next returns what the next byte is that is no space; 0 at the end.
func (c *cursor) next() byte {
	for ; c.at < len(c.text); c.at++ {
		if b := c.text[c.at]; b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return b
		}
	}
	return 0
}

// skip passes the next byte if it is b.
func (c *cursor) skip(b byte) bool {
	if c.next() != b {
		return false
	}
	c.at++
	return true
}

// value passes a value, and returns its text.
func (c *cursor) value() string {
	c.next()
	start := c.at
	for depth := 0; c.at < len(c.text); {
		switch c.text[c.at] {
		case '"':
			c.quoted()
		case '[', '{':
			depth++
			c.at++
		case ']', '}':
			depth--
			c.at++
		case ',', ':', ' ', '\t', '\n', '\r':
			c.at++
		default:
			c.word()
		}
		if depth == 0 {
			break
		}
	}
	return c.text[start:c.at]
}

// word passes a number, true, false or null.
func (c *cursor) word() {
	for c.at < len(c.text) && !strings.ContainsRune(",:]} \t\n\r", rune(c.text[c.at])) {
		c.at++
	}
}

// quoted passes a string, and returns it as it is written, without the quotes.
func (c *cursor) quoted() string {
	c.at++
	start := c.at
	for c.text[c.at] != '"' {
		if c.text[c.at] == '\\' {
			c.at++
		}
		c.at++
	}
	c.at++
	return c.text[start : c.at-1]
}

// array passes an array; f passes its values. It reports whether there is one.
func (c *cursor) array(f func(i int) error) (is bool, err error) {
	if !c.skip('[') {
		return false, nil
	}
	for i := 0; !c.skip(']'); i++ {
		c.skip(',')
		if err := f(i); err != nil {
			return true, err
		}
	}
	return true, nil
}

// object passes an object; f passes the values.
func (c *cursor) object(f func(key string) error) (is bool, err error) {
	if !c.skip('{') {
		return false, nil
	}
	for !c.skip('}') {
		c.skip(',')
		c.next()
		key := unquote(c.quoted())
		c.skip(':')
		if err := f(key); err != nil {
			return true, err
		}
	}
	return true, nil
}

// fields are the values of an object by their keys, of which the last counts; nil of another value.
func (c *cursor) fields() map[string]string {
	found := map[string]string{}
	if is, _ := c.object(func(key string) error { found[key] = c.value(); return nil }); !is {
		return nil
	}
	return found
}

var escapes = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '/': '/'}

// unquote is what a string says; half of a surrogate pair is U+FFFD.
func unquote(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; s[i] != 'u' {
			b.WriteByte(escapes[s[i]])
			continue
		}
		r := escaped(s[i+1:])
		i += 4
		if utf16.IsSurrogate(r) && strings.HasPrefix(s[i+1:], `\u`) {
			if both := utf16.DecodeRune(r, escaped(s[i+3:])); both != utf8.RuneError {
				r, i = both, i+6
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

func escaped(digits string) rune {
	value, _ := strconv.ParseUint(digits[:4], 16, 32)
	return rune(value)
}

// quote appends a string to JSON.
func quote(to []byte, s string) []byte {
	const digits = "0123456789abcdef"
	to = append(to, '"')
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			to = append(to, '\\', b)
		case b < ' ':
			to = append(to, `\u00`...)
			to = append(to, digits[b>>4], digits[b&15])
		default:
			to = append(to, b)
		}
	}
	return append(to, '"')
}
