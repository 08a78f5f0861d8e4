package gobuffer

// grouped is values by their keys, in the order in which the keys came first.
type grouped[K comparable, V any] struct {
	of    map[K]*V
	order []K
	last  K // of which at was asked last, as it is most often asked next
	value *V
}

// at returns the value of a key, which is zero at first.
func (g *grouped[K, V]) at(key K) *V {
	if g.value != nil && g.last == key {
		return g.value
	}
	value := g.of[key]
	if value == nil {
		if g.of == nil {
			g.of = map[K]*V{}
		}
		value = new(V)
		g.of[key] = value
		g.order = append(g.order, key)
	}
	g.last, g.value = key, value
	return value
}
