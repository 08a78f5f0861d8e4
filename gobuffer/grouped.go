package gobuffer

// grouped is values by their keys, in the order in which the keys came first.
type grouped[K comparable, V any] struct {
	of    map[K]*V
	order []K
}

// at returns the value of a key, which is zero at first.
func (g *grouped[K, V]) at(key K) *V {
	value := g.of[key]
	if value == nil {
		if g.of == nil {
			g.of = map[K]*V{}
		}
		value = new(V)
		g.of[key] = value
		g.order = append(g.order, key)
	}
	return value
}
