package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func pullConsumer(c *cluster) {
	topic := c.createTopic("pull", 1)
	c.send(topic, 1, 0, 40, always("p"))
	puller := c.newPuller("pull-group", topic)
	some, err := puller.PullFrom(background, c.queue(topic, 0), 5, 10)
	ok(err, "pull")
	equal(primitive.PullFound, some.Status, "status")
	equal(int64(15), some.NextBeginOffset, "next offset")
	equal(int64(0), some.MinOffset, "start of the queue")
	equal(int64(40), some.MaxOffset, "end of the queue")
	equal(upTo(5, 15), numbersOf(some.GetMessageExts()), "messages, of which 10 were asked for")
	requireExactly(some.GetMessageExts(), topic, upTo(5, 15), always("p"))
	beyond, err := puller.PullFrom(background, c.queue(topic, 0), 45, 10)
	ok(err, "pull beyond the end")
	equal(primitive.PullOffsetIllegal, beyond.Status, "status beyond the end")
	equal(int64(40), beyond.NextBeginOffset, "offset to go on from")

	// At the end a pull waits, and a message that arrives wakes it.
	answer := make(chan *primitive.PullResult, 1)
	go func() {
		limited, cancel := context.WithTimeout(background, patience)
		defer cancel()
		result, _ := puller.PullFrom(limited, c.queue(topic, 0), 40, 10)
		answer <- result
	}()
	c.send(topic, 1, 40, 41, always("p"))
	woken := <-answer
	that(woken != nil && woken.Status == primitive.PullFound, "a pull that finds what arrived, but %v", woken)
	equal([]int{40}, numbersOf(woken.GetMessageExts()), "message that woke the pull")

	ok(puller.UpdateOffset(c.queue(topic, 0), 17), "position")
	ok(puller.PersistOffset(background, topic), "commit")
	position, err := puller.CurrentOffset(c.queue(topic, 0))
	ok(err, "position")
	equal(int64(17), position, "position")
}

func pushBacklog(c *cluster) {
	topic := c.createTopic("backlog", queues)
	c.send(topic, queues, 0, 400, always("stock"))
	var b inbox
	c.startConsumer("backlog-group", topic, "*", &b, consumer.WithConsumeMessageBatchMaxSize(16))
	requireExactly(await(400, &b), topic, upTo(0, 400), always("stock"))
}

func pushTagFilter(c *cluster) {
	topic := c.createTopic("filtered", 1)
	// "AaAa" and "BBBB" have the same hash code, so a broker that filters by hash ships both and the client drops one.
	// All tags are ASCII: of others this client and the servers make different hash codes.
	tags := []string{"red", "blue", "green", "AaAa", "BBBB", "redder", "RED", ""}
	wanted := []string{"red", "green", "AaAa", "end"}
	tagOf := func(n int) string {
		if n == 89 {
			return "end"
		}
		return tags[n%len(tags)]
	}
	expected := []int{}
	for n := range 90 {
		for _, tag := range wanted {
			if tag == tagOf(n) {
				expected = append(expected, n)
			}
		}
	}
	var early, late inbox
	c.startConsumer("filter-early", topic, strings.Join(wanted, " || "), &early)
	c.send(topic, 1, 0, 90, tagOf)
	c.startConsumer("filter-late", topic, strings.Join(wanted, " || "), &late)
	requireExactly(await(len(expected), &early), topic, expected, tagOf)
	requireExactly(await(len(expected), &late), topic, expected, tagOf)
}

func pushBroadcast(c *cluster) {
	topic := c.createTopic("broadcast", 3)
	inboxes := make([]inbox, 2)
	for i := range inboxes {
		c.startConsumer("broadcast-group", topic, "*", &inboxes[i], consumer.WithConsumerModel(consumer.BroadCasting))
	}
	c.send(topic, 3, 0, 60, always("all"))
	for i := range inboxes {
		requireExactly(await(60, &inboxes[i]), topic, upTo(0, 60), always("all"))
	}
}

// Sends by key, so that all messages of a key are in one queue; they must be consumed in the order they were sent.
func pushOrderly(c *cluster) {
	topic := c.createTopic("orderly", queues)
	p := c.startProducer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
	keys, rounds := 10, 12
	tagOf := func(n int) string { return fmt.Sprintf("account-%d", n%keys) }
	var b inbox
	c.startConsumer("orderly-group", topic, "*", &b, consumer.WithConsumerOrder(true))
	for n := range keys * rounds {
		m := message(topic, tagOf(n), n)
		m.WithShardingKey(tagOf(n))
		_, err := p.SendSync(background, m)
		ok(err, "send")
	}
	received := await(keys*rounds, &b)
	requireExactly(received, topic, upTo(0, keys*rounds), tagOf)
	byTag := map[string][]int{}
	for _, m := range received {
		byTag[m.GetTags()] = append(byTag[m.GetTags()], numberOf(m))
	}
	for k := range keys {
		expected := []int{}
		for r := range rounds {
			expected = append(expected, k+r*keys)
		}
		equal(expected, byTag[tagOf(k)], "order of "+tagOf(k))
	}
}

func pushTwoConsumers(c *cluster) {
	topic := c.createTopic("shared", 8)
	var left, right inbox
	leaving := c.startConsumer("shared-group", topic, "*", &left)
	c.startConsumer("shared-group", topic, "*", &right)
	// The client does not tell which queues it holds, so one message to each of them does.
	sent := 0
	wave := func() (leftShare, rightShare int) {
		c.send(topic, 8, sent, sent+8, always("s"))
		sent += 8
		eventually("a wave of messages consumed", func() string {
			leftShare, rightShare = share(&left, sent-8), share(&right, sent-8)
			if leftShare+rightShare < 8 {
				return fmt.Sprintf("%d and %d", leftShare, rightShare)
			}
			return ""
		})
		return leftShare, rightShare
	}
	eventually("half of the queues for each consumer", func() string {
		leftShare, rightShare := wave()
		if leftShare != 4 || rightShare != 4 {
			return fmt.Sprintf("%d and %d", leftShare, rightShare)
		}
		return ""
	})
	settled := sent
	c.send(topic, 8, sent, sent+80, always("s"))
	sent += 80
	eventually("40 messages for each consumer", func() string {
		if l, r := share(&left, settled), share(&right, settled); l < 40 || r < 40 {
			return fmt.Sprintf("%d and %d", l, r)
		}
		return ""
	})

	ok(leaving.Shutdown(), "end of a consumer")
	gone := len(left.messages())
	c.send(topic, 8, sent, sent+40, always("s"))
	sent += 40
	eventually("all messages for the consumer that stayed", func() string {
		if r := share(&right, sent-40); r < 40 {
			return fmt.Sprintf("%d of them", r)
		}
		return ""
	})
	equal(gone, len(left.messages()), "messages of a consumer that left")
	// While queues change hands a message may come twice; it must not get lost.
	seen := map[int]bool{}
	for _, m := range append(left.messages(), right.messages()...) {
		requireUnaltered(m, topic, "s")
		seen[numberOf(m)] = true
	}
	equal(sent, len(seen), "different messages")
}

// share counts the messages of an inbox from a number on.
func share(b *inbox, from int) int {
	numbers := map[int]bool{}
	for _, m := range b.messages() {
		if n := numberOf(m); n >= from {
			numbers[n] = true
		}
	}
	return len(numbers)
}

const early, late = 20, 10

func fromFirst(c *cluster) {
	topic := c.createTopic("first", 2)
	c.send(topic, 2, 0, early, always("b"))
	var b inbox
	c.startConsumer("first-group", topic, "*", &b)
	c.send(topic, 2, early, early+late, always("b"))
	requireExactly(await(early+late, &b), topic, upTo(0, early+late), always("b"))
}

func fromLast(c *cluster) {
	topic := c.createTopic("last", 1)
	c.send(topic, 1, 0, early, always("b"))
	var b inbox
	c.startConsumer("last-group", topic, "*", &b, consumer.WithConsumeFromWhere(consumer.ConsumeFromLastOffset))
	// Nothing tells when the consumer has found the end of the queue. From the first message that it gets, it must get all.
	sent := early
	eventually("a message", func() string {
		c.send(topic, 1, sent, sent+1, always("b"))
		sent++
		if len(b.messages()) == 0 {
			return "none"
		}
		return ""
	})
	first := numberOf(b.messages()[0])
	that(first >= early, "none of the first %d messages, but %d came", early, first)
	c.send(topic, 1, sent, sent+late, always("b"))
	requireExactly(await(sent+late-first, &b), topic, upTo(first, sent+late), always("b"))
}

func fromTimestamp(c *cluster) {
	topic := c.createTopic("timestamp", 2)
	c.send(topic, 2, 0, early, always("b"))
	// The client's timestamps are whole seconds. A second in which nothing happens lies between the two halves, because
	// 4.9 servers take the nearest message, be it before or after.
	moment := time.Now().Truncate(time.Second).Add(2 * time.Second)
	eventually("a later second", func() string {
		if time.Now().Before(moment) {
			return "the same"
		}
		return ""
	})
	c.send(topic, 2, early, early+late, always("b"))
	var b inbox
	c.startConsumer("timestamp-group", topic, "*", &b,
		consumer.WithConsumeFromWhere(consumer.ConsumeFromTimestamp),
		consumer.WithConsumeTimestamp(moment.Format("20060102150405")))
	requireExactly(await(late, &b), topic, upTo(early, early+late), always("b"))
}

func beforeRestart(c *cluster) {
	topic := c.createTopic("restart", queues)
	c.send(topic, queues, 0, 200, always("r"))
	var b inbox
	leaving := c.startConsumer("restart-group", topic, "*", &b)
	requireExactly(await(200, &b), topic, upTo(0, 200), always("r"))
	// Stopping alone must leave the positions behind.
	ok(leaving.Shutdown(), "end of a consumer")
	c.send(topic, queues, 200, 300, always("r"))
}

func afterRestart(c *cluster) {
	topic := c.name("restart")
	requireExactly(flatten(c.read(topic, queues, 300)), topic, upTo(0, 300), always("r"))
	var b inbox
	c.startConsumer("restart-group", topic, "*", &b)
	requireExactly(await(100, &b), topic, upTo(200, 300), always("r"))
}
