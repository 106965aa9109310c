// Drives servers through the Go client and prints one line for each scenario: "ok NAME" or "FAILED NAME reason".
//
//	interop scenarios      NAME_SERVER BROKER PREFIX [NAME...]  everything that needs nothing special
//	interop beginnings     NAME_SERVER BROKER PREFIX [NAME...]  needs a broker with accessMessageInMemoryMaxRatio=0
//	interop before-restart NAME_SERVER BROKER PREFIX            leaves work behind
//	interop after-restart  NAME_SERVER BROKER PREFIX            finds the work left behind
//	interop attempts       NAME_SERVER BROKER PREFIX ATTEMPT... prints what became of each: see accounts.go
//
// The exit code is 0 when all were ok, 1 when one failed, 2 for a wrong call.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
)

type scenario struct {
	name string
	run  func(*cluster)
}

var modes = map[string][]scenario{
	"scenarios": {
		{"topic-creation", topicCreation},
		{"topic-auto-creation", topicAutoCreation},
		{"send-sync", sendSync},
		{"send-async", sendAsync},
		{"send-one-way", sendOneWay},
		{"send-batch", sendBatch},
		{"send-compressed", sendCompressed},
		{"send-large", sendLarge},
		{"pull-consumer", pullConsumer},
		{"push-backlog", pushBacklog},
		{"push-tag-filter", pushTagFilter},
		{"push-broadcast", pushBroadcast},
		{"push-orderly", pushOrderly},
		{"push-two-consumers", pushTwoConsumers},
	},
	"beginnings": {
		{"from-first", fromFirst},
		{"from-last", fromLast},
		{"from-timestamp", fromTimestamp},
	},
	"before-restart": {{"before-restart", beforeRestart}},
	"after-restart":  {{"after-restart", afterRestart}},
}

func main() {
	if len(os.Args) < 5 || modes[os.Args[1]] == nil && os.Args[1] != "attempts" {
		fmt.Fprintln(os.Stderr, "usage: interop MODE NAME_SERVER BROKER PREFIX [NAME...]")
		os.Exit(2)
	}
	// The client prints to standard output, which is for the report here.
	rlog.SetOutputPath("client.log")
	rlog.SetLogLevel("warn")
	if os.Args[1] == "attempts" {
		tryAll(newCluster(os.Args[2], os.Args[3], os.Args[4]), os.Args[5:])
		return
	}
	names := os.Args[5:]
	failures := 0
	for _, s := range modes[os.Args[1]] {
		if len(names) > 0 && !slices.Contains(names, s.name) {
			continue
		}
		started := time.Now()
		if reason := attempt(s, newCluster(os.Args[2], os.Args[3], os.Args[4])); reason != "" {
			fmt.Println("FAILED", s.name, reason)
			failures++
		} else {
			fmt.Println("ok", s.name, time.Since(started).Milliseconds(), "ms")
		}
	}
	if failures > 0 {
		os.Exit(1)
	}
}

// attempt runs one scenario and returns why it failed, on one line; empty when it did not.
func attempt(s scenario, c *cluster) (reason string) {
	defer c.close()
	defer func() {
		if found := recover(); found != nil {
			failure, expected := found.(failure)
			if !expected {
				panic(found)
			}
			reason = strings.Join(strings.Fields(string(failure)), " ")
		}
	}()
	s.run(c)
	return ""
}
