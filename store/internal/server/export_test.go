package server

// Tests beside a client share these.
var (
	Greeting   = greeting
	SeedFrames = seedFrames
	Lie        = lie
	Scaled     = scaled
	Eventually = eventually
)
