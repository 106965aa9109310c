package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// What client and broker may add on the way. Anything else that was not sent is a fault.
var addedOnTheWay = []string{
	primitive.PropertyUniqueClientMessageIdKeyIndex,
	primitive.PropertyWaitStoreMsgOk,
	primitive.PropertyCluster,
	primitive.PropertyMsgRegion,
	primitive.PropertyTraceSwitch,
	primitive.PropertyMinOffset,
	primitive.PropertyMaxOffset,
	primitive.PropertyConsumeStartTime,
	primitive.PropertyShardingKey,
}

// message number n: its content follows from the number alone, so that a second process can tell what a first one sent.
// Every tenth body is long enough for the client to compress it.
func message(topic, tag string, n int) *primitive.Message {
	made := primitive.NewMessage(topic, body(n))
	made.Flag = int32(n * 7)
	if tag != "" {
		made.WithTag(tag)
	}
	made.WithKeys([]string{fmt.Sprintf("order-%d", n), fmt.Sprintf("Schlüssel-键-%d", n)})
	for name, value := range properties(n) {
		made.WithProperty(name, value)
	}
	return made
}

func properties(n int) map[string]string {
	return map[string]string{
		"number":  strconv.Itoa(n),
		"colour":  fmt.Sprintf("blau & grün; \"red\" {%d}", n),
		"ключ-名前": fmt.Sprintf("значение 値 🚀 %d", n),
	}
}

func body(n int) []byte {
	text := fmt.Sprintf("Nachricht № %d – メッセージ 📨", n)
	if n%10 == 9 {
		text = strings.Repeat(text, 200)
	}
	return []byte(text)
}

func numberOf(m *primitive.MessageExt) int {
	n, err := strconv.Atoi(m.GetProperty("number"))
	ok(err, "number of "+m.String())
	return n
}

func numbersOf(messages []*primitive.MessageExt) []int {
	numbers := []int{}
	for _, m := range messages {
		numbers = append(numbers, numberOf(m))
	}
	return numbers
}

// requireExactly: the messages with these numbers came, once each, unaltered, and no others.
func requireExactly(received []*primitive.MessageExt, topic string, expected []int, tagOf func(int) string) {
	for _, m := range received {
		requireUnaltered(m, topic, tagOf(numberOf(m)))
	}
	found := numbersOf(received)
	slices.Sort(found)
	equal(expected, found, "numbers of the messages")
}

func requireUnaltered(m *primitive.MessageExt, topic, tag string) {
	n := numberOf(m)
	which := fmt.Sprintf("message %d: ", n)
	equal(topic, m.Topic, which+"topic")
	equal(tag, m.GetTags(), which+"tag")
	equal(fmt.Sprintf("order-%d Schlüssel-键-%d", n, n), m.GetKeys(), which+"keys")
	equal(int32(n*7), m.Flag, which+"flag")
	that(bytes.Equal(body(n), m.Body), "%sbody as sent", which)
	// The client gives no ids to the members of a batch; their place is their id then.
	if id := m.GetProperty(primitive.PropertyUniqueClientMessageIdKeyIndex); id != "" {
		equal(id, m.MsgId, which+"id")
	} else {
		equal(m.OffsetMsgId, m.MsgId, which+"id")
	}
	own := maps.Clone(m.GetProperties())
	for _, name := range append(addedOnTheWay, primitive.PropertyKeys, primitive.PropertyTags) {
		delete(own, name)
	}
	equal(properties(n), own, which+"properties")
}

func upTo(from, to int) []int {
	numbers := []int{}
	for n := from; n < to; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

func always(tag string) func(int) string {
	return func(int) string { return tag }
}
