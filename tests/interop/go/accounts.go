package main

import (
	"context"
	"fmt"
	"strings"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// tryAll tries what accounts may do. An attempt is OPERATION|KEY|SECRET|TOPIC|GROUP; without a key nothing is signed. It
// prints a line for each: "ok", or the error.
func tryAll(c *cluster, attempts []string) {
	producers := map[primitive.Credentials]rocketmq.Producer{}
	for _, one := range attempts {
		words := strings.Split(one, "|")
		account := primitive.Credentials{AccessKey: words[1], SecretKey: words[2]}
		outcome := "ok"
		if err := try(c, producers, words[0], account, words[3], words[4]); err != nil {
			outcome = strings.Join(strings.Fields(err.Error()), " ")
		}
		fmt.Println(outcome)
	}
}

func try(
	c *cluster,
	producers map[primitive.Credentials]rocketmq.Producer,
	operation string,
	account primitive.Credentials,
	topic, group string,
) error {
	if operation == "pull" {
		puller := c.newPuller(group, topic, consumer.WithGroupName(group), consumer.WithCredentials(account))
		defer puller.Shutdown()
		limited, cancel := context.WithTimeout(background, patience)
		defer cancel()
		_, err := puller.PullFrom(limited, c.queue(topic, 0), 0, 1)
		return err
	}
	p := producers[account]
	if p == nil {
		p = c.startProducer(producer.WithCredentials(account))
		producers[account] = p
	}
	messages := []*primitive.Message{primitive.NewMessage(topic, []byte("body"))}
	if operation == "batch" {
		messages = append(messages, primitive.NewMessage(topic, []byte("body")))
	}
	_, err := p.SendSync(background, messages...)
	return err
}
