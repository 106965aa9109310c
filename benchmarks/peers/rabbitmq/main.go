// Sends to and consumes from RabbitMQ with its makers' Go client:
//
//	rabbitmq send|receive URL MESSAGES BODY CONNECTIONS IN_FLIGHT classic|quorum
//
// Each connection has a durable queue of its own, and all messages are persistent. Every message is acknowledged: by the
// server when it is sent, by the client, many at once, when it is consumed. Prints one JSON line.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// So many may be with a consumer, and after so many it acknowledges all that it has.
const (
	prefetch = 1000
	ackEvery = 250
)

// So many seconds without a message, and what is missing does not come any more.
const emptyMax = 10

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "rabbitmq:", err)
		os.Exit(1)
	}
}

// With the second version of its files, a classic queue confirms what it has written; with the first, what it has synced.
func open(url, queue, kind string) *amqp.Channel {
	channel := must(must(amqp.Dial(url)).Channel())
	settings := amqp.Table{"x-queue-type": kind}
	if kind == "classic" {
		settings["x-queue-version"] = 2
	}
	must(channel.QueueDeclare(queue, true, false, false, false, settings))
	return channel
}

func send(channel *amqp.Channel, queue string, count, inFlight int, body []byte, failed *atomic.Int64) {
	confirmations := channel.NotifyPublish(make(chan amqp.Confirmation, inFlight))
	check(channel.Confirm(false))
	underWay := make(chan struct{}, inFlight)
	var confirmed sync.WaitGroup
	confirmed.Add(1)
	go func() {
		defer confirmed.Done()
		for i := 0; i < count; i++ {
			confirmation, isOpen := <-confirmations
			if !isOpen {
				check(errors.New("the server has closed a connection"))
			}
			if !confirmation.Ack {
				failed.Add(1)
			}
			<-underWay
		}
	}()
	message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}
	for i := 0; i < count; i++ {
		// Waits while too many are under way.
		underWay <- struct{}{}
		check(channel.PublishWithContext(context.Background(), "", queue, false, false, message))
	}
	confirmed.Wait()
}

func receive(channel *amqp.Channel, queue string, left *atomic.Int64, over <-chan struct{}, end func()) {
	check(channel.Qos(prefetch, 0, false))
	messages := must(channel.Consume(queue, "", false, false, false, false, nil))
	var last uint64
	for isOver := false; !isOver; {
		select {
		case message, isOpen := <-messages:
			if !isOpen {
				check(errors.New("the server has closed a connection"))
			}
			last = message.DeliveryTag
			if last%ackEvery == 0 {
				check(channel.Ack(last, true))
			}
			if left.Add(-1) == 0 {
				end()
			}
		case <-over:
			isOver = true
		}
	}
	if last%ackEvery != 0 {
		check(channel.Ack(last, true))
	}
	// Its answer comes after the server has read the acknowledgements.
	check(channel.Close())
}

// Ends the consumers when nothing comes any more.
func watch(left *atomic.Int64, end func()) {
	before := left.Load()
	for empty := 0; empty < emptyMax; empty++ {
		time.Sleep(time.Second)
		if now := left.Load(); now != before {
			before, empty = now, 0
		}
	}
	end()
}

func main() {
	if len(os.Args) != 8 {
		fmt.Fprintln(os.Stderr, "usage: rabbitmq send|receive URL MESSAGES BODY CONNECTIONS IN_FLIGHT classic|quorum")
		os.Exit(2)
	}
	url, kind := os.Args[2], os.Args[7]
	messages, size := must(strconv.Atoi(os.Args[3])), must(strconv.Atoi(os.Args[4]))
	connections, inFlight := must(strconv.Atoi(os.Args[5])), must(strconv.Atoi(os.Args[6]))
	queue := func(i int) string { return fmt.Sprintf("load-%d", i) }
	channels := make([]*amqp.Channel, connections)
	for i := range channels {
		channels[i] = open(url, queue(i), kind)
	}
	var failed, left atomic.Int64
	var work sync.WaitGroup
	started := time.Now()
	if os.Args[1] == "send" {
		body := make([]byte, size)
		for i, channel := range channels {
			share := messages / connections
			if i < messages%connections {
				share++
			}
			work.Go(func() { send(channel, queue(i), share, inFlight, body, &failed) })
		}
	} else {
		left.Store(int64(messages))
		over := make(chan struct{})
		end := sync.OnceFunc(func() { close(over) })
		go watch(&left, end)
		for i, channel := range channels {
			work.Go(func() { receive(channel, queue(i), &left, over, end) })
		}
	}
	work.Wait()
	seconds := time.Since(started).Seconds()
	failed.Add(max(left.Load(), 0))
	fmt.Printf("{\"messages\":%d,\"seconds\":%.3f,\"failed\":%d,\"per_second\":%.0f}\n",
		messages, seconds, failed.Load(), float64(messages)/seconds)
}
