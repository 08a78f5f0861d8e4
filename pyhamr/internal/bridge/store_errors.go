package bridge

import (
	"context"
	"errors"
	"syscall"

	"hamr/store"
)

// The kinds of the store's errors: HAMR_ERROR_NOT_FOUND … of hamr/store_interface.h, and those of
// hamr/store_functions.h.
const (
	storeNotFound Kind = iota + 32
	storeNotSealed
	storeSealed
	storeNameTaken
	storeFull
	storeLost
	storeRefused
	storeTimeout
	storeFailed
	storeIsClosed
	storeDescriptors
	StoreKindsEnd // HAMR_STORE_KINDS_END
)

// classifyStore sets what is known of an error of the store's.
func (f *Failure) classifyStore(err error) {
	var (
		missing   *store.NotFoundError
		notSealed *store.NotSealedError
		sealed    *store.SealedError
		deleted   *store.DeletedError
		taken     *store.NameTakenError
		full      *store.FullError
		lost      *store.LostError
		refused   *store.RefusedError
		argument  *store.ArgumentError
		protocol  *store.ProtocolError
		system    *store.SystemError
		files     *store.DescriptorsError
	)
	switch {
	case errors.As(err, &missing), errors.As(err, &deleted):
		f.Kind = storeNotFound
	case errors.As(err, &notSealed):
		f.Kind = storeNotSealed
	case errors.As(err, &sealed):
		f.Kind = storeSealed
	case errors.As(err, &taken):
		f.Kind, f.Name = storeNameTaken, taken.ID.String()
	case errors.As(err, &full):
		f.Kind, f.Source, f.Size = storeFull, full.Memory, int(full.Needed)
		f.Limit, f.Used, f.Holders = full.Limit, full.Used, full.Holders
	case errors.As(err, &lost):
		f.Kind, f.Name = storeLost, lost.Path
	case errors.As(err, &refused):
		f.Kind = storeRefused
	case errors.As(err, &argument):
	case errors.As(err, &files):
		f.Kind, f.Code = storeDescriptors, int(syscall.EMFILE)
	case errors.As(err, &protocol), errors.As(err, &system):
		f.Kind = storeFailed
	case errors.Is(err, store.ErrClosed):
		f.Kind, f.Message = storeIsClosed, "what is asked was closed, sealed or aborted"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		f.Kind = storeTimeout
	}
}
