module example.com/heat

go 1.26.0

require hamr v0.0.0

require (
	github.com/ebitengine/purego v0.11.3 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace hamr => ../..
