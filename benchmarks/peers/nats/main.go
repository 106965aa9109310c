// Sends to and consumes from NATS JetStream with its own Go client: nats send|receive URL MESSAGES BODY CONNECTIONS IN_FLIGHT
//
// Every message is acknowledged: by the server when it is sent, by the client when it is consumed. Prints one JSON line.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const stream = "LOAD"

// So many times a second without a message, and what is missing does not come any more.
const emptyMax = 10

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		os.Exit(1)
	}
}

func connect(url string, inFlight int) jetstream.JetStream {
	return must(jetstream.New(must(nats.Connect(url)), jetstream.WithPublishAsyncMaxPending(inFlight)))
}

func send(js jetstream.JetStream, count int, body []byte, failed *atomic.Int64) {
	replies := make([]jetstream.PubAckFuture, 0, count)
	for i := 0; i < count; i++ {
		// Waits while too many are under way.
		replies = append(replies, must(js.PublishAsync("load.messages", body, jetstream.WithStallWait(time.Minute))))
	}
	<-js.PublishAsyncComplete()
	for _, reply := range replies {
		select {
		case <-reply.Ok():
		case <-reply.Err():
			failed.Add(1)
		}
	}
}

func main() {
	if len(os.Args) != 7 {
		fmt.Fprintln(os.Stderr, "usage: nats send|receive URL MESSAGES BODY CONNECTIONS IN_FLIGHT")
		os.Exit(2)
	}
	url := os.Args[2]
	messages, size := must(strconv.Atoi(os.Args[3])), must(strconv.Atoi(os.Args[4]))
	connections, inFlight := must(strconv.Atoi(os.Args[5])), must(strconv.Atoi(os.Args[6]))
	ctx := context.Background()
	first := connect(url, inFlight)
	var failed, missing atomic.Int64
	var work sync.WaitGroup
	var started time.Time
	if os.Args[1] == "send" {
		must(first.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: stream, Subjects: []string{"load.>"}, Storage: jetstream.FileStorage,
		}))
		body := make([]byte, size)
		started = time.Now()
		for i := 0; i < connections; i++ {
			js := connect(url, inFlight)
			share := messages / connections
			if i < messages%connections {
				share++
			}
			work.Add(1)
			go func() {
				defer work.Done()
				send(js, share, body, &failed)
			}()
		}
	} else {
		must(first.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
			Durable: "load", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 65536,
		}))
		left := &missing
		left.Store(int64(messages))
		started = time.Now()
		for i := 0; i < connections; i++ {
			own := must(connect(url, inFlight).Consumer(ctx, stream, "load"))
			work.Add(1)
			go func() {
				defer work.Done()
				for empty := 0; left.Load() > 0 && empty < emptyMax; empty++ {
					batch := must(own.Fetch(500, jetstream.FetchMaxWait(time.Second)))
					for message := range batch.Messages() {
						check(message.Ack())
						left.Add(-1)
						empty = 0
					}
				}
			}()
		}
	}
	work.Wait()
	seconds := time.Since(started).Seconds()
	failed.Add(max(missing.Load(), 0))
	fmt.Printf("{\"messages\":%d,\"seconds\":%.3f,\"failed\":%d,\"per_second\":%.0f}\n",
		messages, seconds, failed.Load(), float64(messages)/seconds)
}
