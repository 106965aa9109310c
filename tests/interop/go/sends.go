package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	queues = 4
	many   = 100
)

func topicCreation(c *cluster) {
	topic := c.createTopic("made", 5)
	tool, err := admin.NewAdmin(admin.WithResolver(c.resolver()))
	ok(err, "admin")
	defer tool.Close()
	list, err := tool.FetchAllTopicList(background)
	ok(err, "list of topics")
	that(slices.Contains(list.TopicList, topic), "%s in the list of topics %v", topic, list.TopicList)
	ok(tool.DeleteTopic(background, admin.WithTopicDelete(topic), admin.WithBrokerAddrDelete(c.broker)), "deletion")
	list, err = tool.FetchAllTopicList(background)
	ok(err, "list of topics")
	that(!slices.Contains(list.TopicList, topic), "no %s in the list of topics", topic)
}

func topicAutoCreation(c *cluster) {
	topic := c.name("born-by-send")
	p := c.startProducer()
	for n := range 8 {
		_, err := p.SendSync(background, message(topic, "t", n))
		ok(err, "send to a topic that nobody made")
	}
	tool, err := admin.NewAdmin(admin.WithResolver(c.resolver()))
	ok(err, "admin")
	defer tool.Close()
	// The client asks for 4 queues, TBW102 offers 8: the smaller number wins.
	c.awaitQueues(tool, topic, queues)
	requireExactly(flatten(c.read(topic, queues, 8)), topic, upTo(0, 8), always("t"))
}

func sendSync(c *cluster) {
	topic := c.createTopic("sync", queues)
	tagOf := func(n int) string { return fmt.Sprintf("Tag-标签-%d", n%3) }
	receipts := c.send(topic, queues, 0, many, tagOf)
	stored := c.read(topic, queues, many)
	requireExactly(flatten(stored), topic, upTo(0, many), tagOf)
	for id, messages := range stored {
		for offset, m := range messages {
			n := numberOf(m)
			equal(offset*queues+id, n, "order in a queue")
			equal(int64(offset), receipts[n].QueueOffset, "queue offset in the receipt")
			equal(id, receipts[n].MessageQueue.QueueId, "queue in the receipt")
			equal(m.MsgId, receipts[n].MsgID, "id in the receipt")
			equal(m.OffsetMsgId, receipts[n].OffsetMsgID, "place in the receipt")
		}
	}
}

func sendAsync(c *cluster) {
	topic := c.createTopic("async", queues)
	p := c.startProducer()
	var lock sync.Mutex
	receipts, failures := 0, []error{}
	for n := range many {
		ok(p.SendAsync(background, func(_ context.Context, receipt *primitive.SendResult, err error) {
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				failures = append(failures, err)
			} else {
				receipts++
			}
		}, message(topic, "a", n)), "asynchronous send")
	}
	eventually("a callback for each send", func() string {
		lock.Lock()
		defer lock.Unlock()
		that(len(failures) == 0, "no failed send, but %v", failures)
		if receipts < many {
			return fmt.Sprintf("%d of them", receipts)
		}
		return ""
	})
	requireExactly(flatten(c.read(topic, queues, many)), topic, upTo(0, many), always("a"))
}

func sendOneWay(c *cluster) {
	topic := c.createTopic("one-way", 1)
	p := c.startProducer()
	for n := range many {
		ok(p.SendOneWay(background, message(topic, "o", n)), "one-way send")
	}
	// One connection is served in order: when this one is stored, all are.
	_, err := p.SendSync(background, message(topic, "o", many))
	ok(err, "send after the one-way ones")
	requireExactly(flatten(c.read(topic, 1, many+1)), topic, upTo(0, many+1), always("o"))
}

func sendBatch(c *cluster) {
	topic := c.createTopic("batch", 1)
	p := c.startProducer()
	members := []*primitive.Message{}
	for n := range 25 {
		members = append(members, message(topic, "b", n))
	}
	receipt, err := p.SendSync(background, members...)
	ok(err, "send of a batch")
	equal(primitive.SendOK, receipt.Status, "status of the batch")
	equal(25, len(strings.Split(receipt.OffsetMsgID, ",")), "ids in the reply")
	stored := c.read(topic, 1, 25)[0]
	requireExactly(stored, topic, upTo(0, 25), always("b"))
	equal(upTo(0, 25), numbersOf(stored), "order of the members")
}

func sendCompressed(c *cluster) {
	topic := c.createTopic("compressed", 1)
	p := c.startProducer()
	text := []byte(strings.Repeat("Wiederholung 繰り返し ", 4_000))
	_, err := p.SendSync(background, primitive.NewMessage(topic, text))
	ok(err, "send")
	stored := c.read(topic, 1, 1)[0][0]
	that(int(stored.StoreSize) < len(text)/10, "a small record, but it has %d bytes", stored.StoreSize)
	that(bytes.Equal(text, stored.Body), "the body unaltered")
}

func sendLarge(c *cluster) {
	topic := c.createTopic("large", 1)
	// What cannot be compressed would only grow, and sizes near the limit are the point here.
	p := c.startProducer(producer.WithCompressMsgBodyOverHowmuch(1 << 30))
	noise := make([]byte, 4<<20+1024)
	rand.New(rand.NewSource(1)).Read(noise)
	_, err := p.SendSync(background, primitive.NewMessage(topic, noise))
	that(err != nil && strings.Contains(err.Error(), "CODE: 13"), "a refusal by code 13, but %v", err)
	fine := noise[:4<<20-1024]
	_, err = p.SendSync(background, primitive.NewMessage(topic, fine))
	ok(err, "a body just below the limit")
	that(bytes.Equal(fine, c.read(topic, 1, 1)[0][0].Body), "the large body unaltered")
}
