package gobuffer

import (
	"errors"

	"hamr/backends"
)

// madeBytes is how much is converted at once.
var madeBytes = 64 << 20

// copyMade copies blocks by way of temporaries: those that are converted, of which no end shares bytes with the other,
// or that are read before they are overwritten.
func (g *blockCopy) copyMade(p *pair) error {
	most := g.count
	if !g.meets(p) {
		one := max(1, p.dst.block().NBytes(), p.src.block().NBytes())
		most = max(1, madeBytes/one)
	}
	for k := 0; k < g.count; k += most {
		n := min(most, g.count-k)
		if err := g.copyMadePart(p, cutIndex(g.to, k, n), cutIndex(g.from, k, n), n); err != nil {
			return err
		}
	}
	return nil
}

func (g *blockCopy) copyMadePart(p *pair, to, from backends.BlockIndex, n int) (err error) {
	gathered, free, err := g.runtime.besideBlocks(p.src, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	all := backends.BlockIndex{Extent: n}
	gather := blockCopy{runtime: g.runtime, count: n, to: all, from: from,
		pairs: []*pair{{g.runtime, gathered, p.src, deferred}}}
	if err := gather.copy(); err != nil {
		return err
	}
	//mutate:replace gathered blocks are read before they are there
	//mutate:with finishPairs([]pair{*gather.pairs[0]}) => error(nil)
	if err := finishPairs([]pair{*gather.pairs[0]}); err != nil {
		return err
	}
	if inner := p.dst.gathered(n); inner.layout.Equal(gathered.layout) && p.dst.onHost() == p.src.onHost() {
		return g.scatter(p, gathered, to, n)
	}
	made, freeMade, err := g.runtime.besideBlocks(p.dst, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, freeMade()) }()
	if err := g.runtime.copyElements(made, gathered, Async); err != nil {
		return err
	}
	return g.scatter(p, made, to, n)
}

func (g *blockCopy) scatter(p *pair, made piece, to backends.BlockIndex, n int) error {
	scatter := blockCopy{runtime: g.runtime, count: n, to: to, from: backends.BlockIndex{Extent: n},
		pairs: []*pair{{g.runtime, p.dst, made, p.transfer}}}
	return scatter.copy()
}

// besideBlocks is memory for n blocks as p has them, where p is. free ends its use.
func (r *Runtime) besideBlocks(p piece, n int) (made piece, free func() error, err error) {
	made = p.gathered(n)
	var m *Memory
	if !p.onHost() {
		m, err = r.scratch(p, made.layout.NBytes())
	}
	if p.onHost() || outOfMemory(err) {
		m, err = r.Allocate(backends.Malloc, backends.HostDevice, made.layout.NBytes(), 0, false)
		made.stream = 0
	}
	if err != nil {
		return piece{}, nil, err
	}
	made.memory, made.address = m, m.region.Address
	return made, m.Release, nil
}

// cutIndex is n indices from one on.
func cutIndex(x backends.BlockIndex, k, n int) backends.BlockIndex {
	if x.List != nil {
		return backends.BlockIndex{List: x.List[k : k+n], Extent: x.Extent}
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(k + i)
	}
	return backends.BlockIndex{List: list, Extent: x.Extent}
}
