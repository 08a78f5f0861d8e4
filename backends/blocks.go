package backends

// BlockCopier is implemented by backends that copy many equally large blocks by one enqueued step, wherever they lie:
// pages of a cache, rows of a table.
type BlockCopier interface {
	// CopyBlocks enqueues the copies in stream order, and in any order among themselves. The stream is one that Copy
	// would take. Host memory that the stream's device does not reach is copied as Copy does, by indices that are no
	// Region. The error is errors.ErrUnsupported where another way must be taken: then nothing is enqueued. After another
	// error some copies may have begun. Those that are enqueued stay in the stream. Reading is also about indices in a
	// Region. Lists and the Planes may change when it has returned.
	CopyBlocks(blocks *Blocks, stream Stream) (Progress, error)
}

// Blocks is copies of Count blocks of each plane: block To[k] of the plane's Dst becomes block From[k] of its Src.
// No plane's target shares bytes with another target, or with a source.
type Blocks struct {
	Planes   []Plane // all targets are memory of one kind and one device, and so are all sources
	Size     int     // bytes of a block, side by side at both ends
	Count    int     // how many indices there are
	To, From BlockIndex
	// Repeated says that To may name a block twice, of which the last one wins. It is false where To is a List, or
	// counts, as then it names none twice.
	Repeated bool
	// Stop is as CopyUntil's, where it is not nil.
	Stop *Stop
	// Failed is set by CopyBlocks where the device reads indices and the stream is not captured: see BlockFailure.
	Failed BlockFailure
}

// Plane is an array of blocks at both ends. Block i begins i strides behind the address. Blocks of one plane do not
// overlap. Strides may be less than zero.
type Plane struct {
	Dst, Src             Region
	DstStride, SrcStride int // bytes
}

// BlockIndex says which blocks are meant: those of List, else those whose numbers lie in Region, else 0, 1, 2, …
type BlockIndex struct {
	List   []int64 // if not nil: Count numbers, each in [0, Extent)
	Region Region  // if its address is not zero: Count signed integers, side by side, which the device reads
	Width  int     // bytes of an integer in Region, 4 or 8
	Extent int     // how many blocks there are
}

// BlockFailure returns an index in a Region that is out of range, or nil. It is called once, when the stream has passed
// the copy. The device checks all indices before it copies. Those from -Extent to -1 count from the end.
// Where one is out of range, no block is copied.
type BlockFailure func() *BadIndex

// BadIndex is an index out of range. It is the first such of To, or the first such of From where all of To are
// right.
type BadIndex struct {
	To       bool // of Blocks.To, else of From
	Position int  // 0 to Count-1
	Value    int64
}
