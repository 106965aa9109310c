package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

var background = context.Background()

// cluster is one name server with one master broker, as one scenario sees it.
type cluster struct {
	nameServer string
	broker     string
	prefix     string
	clients    int
	endings    []func()
}

func newCluster(nameServer, broker, prefix string) *cluster {
	return &cluster{nameServer: nameServer, broker: broker, prefix: prefix}
}

func (c *cluster) close() {
	for i := len(c.endings) - 1; i >= 0; i-- {
		c.endings[i]()
	}
}

func (c *cluster) name(stem string) string {
	return c.prefix + "-" + stem
}

// instance names a client. Two of the same name would share one connection and one identity.
func (c *cluster) instance() string {
	c.clients++
	return fmt.Sprintf("%s-%d-%d", c.prefix, time.Now().UnixNano(), c.clients)
}

func (c *cluster) resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{c.nameServer})
}

// createTopic creates a topic by the admin API and waits until clients can find it.
func (c *cluster) createTopic(stem string, queues int) string {
	topic := c.name(stem)
	tool, err := admin.NewAdmin(admin.WithResolver(c.resolver()))
	ok(err, "admin")
	defer tool.Close()
	ok(tool.CreateTopic(background,
		admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(c.broker),
		admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues)), "create "+topic)
	c.awaitQueues(tool, topic, queues)
	return topic
}

func (c *cluster) awaitQueues(tool admin.Admin, topic string, queues int) {
	eventually(fmt.Sprintf("%d queues of %s", queues, topic), func() string {
		found, err := tool.FetchPublishMessageQueues(background, topic)
		if err != nil {
			return err.Error()
		}
		if len(found) != queues {
			return fmt.Sprint(found)
		}
		return ""
	})
}

func (c *cluster) startProducer(options ...producer.Option) rocketmq.Producer {
	made, err := rocketmq.NewProducer(append([]producer.Option{
		producer.WithNsResolver(c.resolver()),
		producer.WithGroupName(c.name("producer")),
		producer.WithInstanceName(c.instance()),
		producer.WithRetry(0),
	}, options...)...)
	ok(err, "producer")
	ok(made.Start(), "start of a producer")
	c.endings = append(c.endings, func() { made.Shutdown() })
	return made
}

// send sends numbers [from, to) one after another, number n to queue n mod queues.
func (c *cluster) send(topic string, queues int, from, to int, tagOf func(int) string) []*primitive.SendResult {
	p := c.startProducer(producer.WithQueueSelector(producer.NewManualQueueSelector()))
	receipts := []*primitive.SendResult{}
	for n := from; n < to; n++ {
		m := message(topic, tagOf(n), n)
		m.Queue = c.queue(topic, n%queues)
		receipt, err := p.SendSync(background, m)
		ok(err, fmt.Sprintf("send %d", n))
		equal(primitive.SendOK, receipt.Status, fmt.Sprintf("status of send %d", n))
		receipts = append(receipts, receipt)
	}
	return receipts
}

const brokerName = "interop-broker"

func (c *cluster) queue(topic string, id int) *primitive.MessageQueue {
	return &primitive.MessageQueue{Topic: topic, BrokerName: brokerName, QueueId: id}
}

func (c *cluster) newPuller(group, topic string, options ...consumer.Option) rocketmq.PullConsumer {
	made, err := rocketmq.NewPullConsumer(append([]consumer.Option{
		consumer.WithNsResolver(c.resolver()),
		consumer.WithGroupName(c.name(group)),
		consumer.WithInstance(c.instance()),
	}, options...)...)
	ok(err, "pull consumer")
	ok(made.Subscribe(topic, consumer.MessageSelector{}), "subscription")
	ok(made.Start(), "start of a pull consumer")
	c.endings = append(c.endings, func() { made.Shutdown() })
	return made
}

// read waits until all of the queues together hold so many messages, and returns them by queue.
func (c *cluster) read(topic string, queues, count int) [][]*primitive.MessageExt {
	puller := c.newPuller("reader", topic)
	byQueue := make([][]*primitive.MessageExt, queues)
	// Java's brokers answer a send a moment before the message can be read.
	eventually(fmt.Sprintf("%d messages of %s", count, topic), func() string {
		total := 0
		for id := range queues {
			byQueue[id] = c.readQueue(puller, c.queue(topic, id))
			total += len(byQueue[id])
		}
		if total != count {
			return fmt.Sprintf("%d of them", total)
		}
		return ""
	})
	return byQueue
}

// readQueue reads a queue that is not empty as far as it says it goes: beyond the end a pull would wait for more.
func (c *cluster) readQueue(puller rocketmq.PullConsumer, queue *primitive.MessageQueue) []*primitive.MessageExt {
	messages := []*primitive.MessageExt{}
	for {
		offset := int64(len(messages))
		limited, cancel := context.WithTimeout(background, patience)
		result, err := puller.PullFrom(limited, queue, offset, 32)
		cancel()
		ok(err, fmt.Sprintf("pull at %d of %v", offset, queue))
		equal(primitive.PullFound, result.Status, fmt.Sprintf("status of the pull at %d of %v", offset, queue))
		for _, m := range result.GetMessageExts() {
			equal(int64(len(messages)), m.QueueOffset, "queue offset")
			messages = append(messages, m)
		}
		equal(int64(len(messages)), result.NextBeginOffset, "next offset")
		if result.NextBeginOffset == result.MaxOffset {
			return messages
		}
	}
}

func flatten(byQueue [][]*primitive.MessageExt) []*primitive.MessageExt {
	all := []*primitive.MessageExt{}
	for _, queue := range byQueue {
		all = append(all, queue...)
	}
	return all
}

// inbox keeps whatever arrives. Filled by the client's goroutines, read by the scenario's.
type inbox struct {
	lock     sync.Mutex
	received []*primitive.MessageExt
}

func (b *inbox) accept(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.received = append(b.received, messages...)
	return consumer.ConsumeSuccess, nil
}

func (b *inbox) messages() []*primitive.MessageExt {
	b.lock.Lock()
	defer b.lock.Unlock()
	return append([]*primitive.MessageExt{}, b.received...)
}

// await waits until the inboxes together hold that many, and returns all of it, even what is too much.
func await(count int, inboxes ...*inbox) []*primitive.MessageExt {
	var all []*primitive.MessageExt
	eventually(fmt.Sprintf("%d messages consumed", count), func() string {
		all = nil
		for _, b := range inboxes {
			all = append(all, b.messages()...)
		}
		if len(all) < count {
			return fmt.Sprintf("%d of them", len(all))
		}
		return ""
	})
	return all
}

func (c *cluster) startConsumer(
	group, topic, tags string, b *inbox, options ...consumer.Option,
) rocketmq.PushConsumer {
	made, err := rocketmq.NewPushConsumer(append([]consumer.Option{
		consumer.WithNsResolver(c.resolver()),
		consumer.WithGroupName(c.name(group)),
		consumer.WithInstance(c.instance()),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, options...)...)
	ok(err, "push consumer")
	selector := consumer.MessageSelector{}
	if tags != "*" {
		selector = consumer.MessageSelector{Type: consumer.TAG, Expression: tags}
	}
	ok(made.Subscribe(topic, selector, b.accept), "subscription")
	ok(made.Start(), "start of a push consumer")
	c.endings = append(c.endings, func() { made.Shutdown() })
	return made
}
