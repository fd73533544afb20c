// Checks a server by the client gomemcache: the address is the only argument.
package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

func check(what string, err, expected error) {
	if !errors.Is(err, expected) {
		fmt.Fprintf(os.Stderr, "%s: %v instead of %v\n", what, err, expected)
		os.Exit(1)
	}
}

func value(c *memcache.Client, key, expected string) *memcache.Item {
	item, err := c.Get(key)
	check("get "+key, err, nil)
	if string(item.Value) != expected {
		check("get "+key, fmt.Errorf("%q", item.Value), nil)
	}
	return item
}

func main() {
	c := memcache.New(os.Args[1])
	c.Timeout = time.Minute
	c.MaxIdleConns = 8
	check("ping", c.Ping(), nil)
	check("set", c.Set(&memcache.Item{Key: "k", Value: []byte("v"), Flags: 7}), nil)
	if flags := value(c, "k", "v").Flags; flags != 7 {
		check("flags", fmt.Errorf("%d", flags), nil)
	}
	check("add", c.Add(&memcache.Item{Key: "k", Value: []byte("w")}), memcache.ErrNotStored)
	check("replace", c.Replace(&memcache.Item{Key: "none"}), memcache.ErrNotStored)
	check("append", c.Append(&memcache.Item{Key: "k", Value: []byte("x")}), nil)
	check("prepend", c.Prepend(&memcache.Item{Key: "k", Value: []byte("u")}), nil)
	item := value(c, "k", "uvx")
	item.Value = []byte("swapped")
	check("cas", c.CompareAndSwap(item), nil)
	check("cas again", c.CompareAndSwap(item), memcache.ErrCASConflict)
	check("touch", c.Touch("k", 100), nil)
	check("touch none", c.Touch("none", 100), memcache.ErrCacheMiss)
	check("set n", c.Set(&memcache.Item{Key: "n", Value: []byte("5")}), nil)
	number, err := c.Increment("n", 3)
	check("incr", err, nil)
	less, err := c.Decrement("n", 100)
	check("decr", err, nil)
	if number != 8 || less != 0 {
		check("numbers", fmt.Errorf("%d, %d", number, less), nil)
	}
	var clients sync.WaitGroup
	for client := 0; client < 8; client++ {
		clients.Add(1)
		go func(client int) {
			defer clients.Done()
			keys := []string{"absent"}
			for n := 0; n < 300; n++ {
				key := fmt.Sprintf("%d-%d", client, n)
				check("set", c.Set(&memcache.Item{Key: key, Value: make([]byte, 4000+n)}), nil)
				keys = append(keys, key)
			}
			found, err := c.GetMulti(keys)
			check("get of many", err, nil)
			for n := 0; n < 300; n++ {
				item := found[fmt.Sprintf("%d-%d", client, n)]
				if item == nil || len(item.Value) != 4000+n {
					check("get of many", fmt.Errorf("%v is wrong", item), nil)
				}
			}
		}(client)
	}
	clients.Wait()
	check("delete", c.Delete("k"), nil)
	check("delete again", c.Delete("k"), memcache.ErrCacheMiss)
	check("flush_all", c.DeleteAll(), nil)
	_, err = c.Get("n")
	check("get after flush_all", err, memcache.ErrCacheMiss)
}
