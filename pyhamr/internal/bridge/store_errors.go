package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"syscall"

	"hamr/store"
)

// storeReply makes a reply of an error of the store's: "!" and JSON, of which Python makes an
// exception. Others are raised as of any call.
func storeReply(reply *string, err *error) {
	if *err == nil {
		return
	}
	if told := storeError(*err); told != nil {
		text, _ := json.Marshal(told)
		*reply, *err = "!"+string(text), nil
	}
}

func storeError(err error) map[string]any {
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
	told := map[string]any{"message": err.Error()}
	switch {
	case errors.As(err, &missing), errors.As(err, &deleted):
		told["kind"] = "not found"
	case errors.As(err, &notSealed):
		told["kind"] = "not sealed"
	case errors.As(err, &sealed):
		told["kind"] = "sealed"
	case errors.As(err, &taken):
		told["kind"], told["id"] = "name taken", taken.ID.String()
	case errors.As(err, &full):
		holders := make([][2]int64, len(full.Holders))
		for i, h := range full.Holders {
			holders[i] = [2]int64{int64(h.Process), h.Bytes}
		}
		told["kind"], told["memory"], told["size"] = "full", full.Memory, full.Needed
		told["limit"], told["used"], told["holders"] = full.Limit, full.Used, holders
	case errors.As(err, &lost):
		told["kind"], told["path"] = "lost", lost.Path
	case errors.As(err, &refused):
		told["kind"] = "refused"
	case errors.As(err, &argument):
		told["kind"] = "value"
	case errors.As(err, &files):
		told["kind"], told["errno"] = "system", int(syscall.EMFILE)
	case errors.As(err, &protocol), errors.As(err, &system):
		told["kind"] = "store"
	case errors.Is(err, store.ErrClosed):
		told["kind"], told["message"] = "value", "what is asked was closed, sealed or aborted"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		told["kind"] = "timeout"
	default:
		return nil
	}
	return told
}
