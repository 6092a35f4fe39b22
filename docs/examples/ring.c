// SPDX-License-Identifier: Apache-2.0
/*
 * ring produce FILE, ring consume FILE: the consumer prints the standard input of the producer.
 * Both may run on any system that mounts the StargateFS volume, and use a ring in FILE. Each block
 * begins with its length in four bytes. The length 0 ends the stream.
 */
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <stargate.h>

#define ROOM	65536
#define BLOCK	10000

static stargate_cursor *cursor;
static unsigned char *ring;

static void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "ring: %s\n", stargate_why(err));
	exit(1);
}

static void put(const void *from, uint32_t len)
{
	const unsigned char *next = from;
	uint64_t at, room;

	for (; len; len -= (uint32_t)room, next += room) {
		must(stargate_publish_at(cursor, &at, &room, STARGATE_FOREVER));
		room = room < len ? room : len;
		memcpy(ring + at, next, room);
		must(stargate_publish(cursor, room));
	}
}

static void get(void *to, uint32_t len)
{
	unsigned char *next = to;
	uint64_t at, bytes;

	for (; len; len -= (uint32_t)bytes, next += bytes) {
		must(stargate_consume_at(cursor, &at, &bytes, STARGATE_FOREVER));
		bytes = bytes < len ? bytes : len;
		memcpy(next, ring + at, bytes);
		must(stargate_consume(cursor, bytes));
	}
}

static void produce(void)
{
	unsigned char block[BLOCK];
	uint32_t len;

	do {
		len = (uint32_t)fread(block, 1, sizeof(block), stdin);
		put(&len, sizeof(len));
		put(block, len);
	} while (len);
}

static void consume(void)
{
	unsigned char block[BLOCK];
	uint32_t len;

	for (get(&len, sizeof(len)); len && len <= sizeof(block); get(&len, sizeof(len))) {
		get(block, len);
		fwrite(block, 1, len, stdout);
	}
}

int main(int argc, char **argv)
{
	struct stargate_map map;
	char *path;

	if (argc != 3 || (strcmp(argv[1], "produce") && strcmp(argv[1], "consume"))) {
		fprintf(stderr, "Usage: ring produce|consume FILE\n");
		return 2;
	}
	path = strdup(argv[2]);
	must(stargate_map_file(&map, argv[2], O_RDWR | O_CREAT, 0666, ROOM));
	must(stargate_cursor_open(&cursor, argv[2], basename(path), ROOM));
	ring = map.base;
	if (argv[1][0] == 'p')
		produce();
	else
		consume();
	stargate_cursor_close(cursor);
	stargate_unmap(&map);
	free(path);
	return fflush(stdout) ? 1 : 0;
}
