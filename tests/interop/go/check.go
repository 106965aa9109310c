package main

import (
	"fmt"
	"reflect"
	"time"
)

// Generous, because a busy machine is no fault of the server; only a failing run ever waits this long.
const patience = 30 * time.Second

// failure ends a scenario by way of panic and says what was expected and what was found.
type failure string

func fail(format string, arguments ...any) {
	panic(failure(fmt.Sprintf(format, arguments...)))
}

func that(holds bool, format string, arguments ...any) {
	if !holds {
		fail("expected: "+format, arguments...)
	}
}

func equal(expected, found any, what string) {
	if !reflect.DeepEqual(expected, found) {
		fail("%s: expected <%v>, found <%v>", what, expected, found)
	}
}

func ok(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

// eventually waits until the probe finds nothing missing.
func eventually(expectation string, probe func() (missing string)) {
	deadline := time.Now().Add(patience)
	for {
		missing := probe()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			fail("expected within %v: %s; last seen: %s", patience, expectation, missing)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
