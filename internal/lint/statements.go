package lint

import "strings"

// statement is a statement of Python in one line: without comments, its strings
// taken out.
type statement struct {
	text     string
	indent   int
	literals []string
}

// statements cuts Python's text at line ends and semicolons outside of brackets,
// and at colons: what follows a colon in its line may be a statement.
func statements(text string) (list []statement) {
	var current statement
	var line strings.Builder
	depth, indent, fresh := 0, 0, true
	end := func() {
		current.text = strings.Join(strings.Fields(line.String()), " ")
		if current.text != "" || current.literals != nil {
			current.indent = indent
			list = append(list, current)
		}
		current = statement{}
		line.Reset()
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if fresh && (c == ' ' || c == '\t') {
			indent++
			continue
		}
		fresh = false
		switch {
		case c == '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case c == '"' || c == '\'':
			literal, length := stringAt(text[i:])
			current.literals = append(current.literals, literal)
			line.WriteString(`""`)
			i += length - 1
		case c == '\\' && i+1 < len(text) && text[i+1] == '\n':
			line.WriteByte(' ')
			i++
		case c == '\n' && depth > 0:
			line.WriteByte(' ')
		case c == '\n':
			end()
			indent, fresh = 0, true
		case depth == 0 && c == ';':
			end()
		case depth == 0 && c == ':':
			end()
			indent++ // it is inside of what the colon opens
		default:
			depth += strings.Count("([{", string(c)) - strings.Count(")]}", string(c))
			line.WriteByte(c)
		}
	}
	end()
	return list
}

// stringAt is the content of the string that text starts with, and its length
// with its quotes.
func stringAt(text string) (content string, length int) {
	quote := text[:1]
	if strings.HasPrefix(text, strings.Repeat(quote, 3)) {
		quote = text[:3]
	}
	for i := len(quote); i < len(text); i++ {
		if text[i] == '\\' {
			i++
		} else if strings.HasPrefix(text[i:], quote) {
			return text[len(quote):i], i + len(quote)
		}
	}
	return text[len(quote):], len(text)
}
