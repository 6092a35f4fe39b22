// SPDX-License-Identifier: Apache-2.0
/* stargate-net: a network between the systems of a volume. */
#include <errno.h>
#include <string.h>
#include "net.h"

static const char usage[] =
"Usage: stargate-net [OPTION]... COMMAND [NAME]\n"
"A network between all systems that use a StargateFS volume (experimental).\n"
"\n"
"  allow                  permit networks on the volume, for all its systems\n"
"  deny                   end this permission, and all networks on the volume\n"
"  up NAME                make the network interface NAME, and set it up\n"
"  down NAME              remove it\n"
"  show NAME              show its volume, its peers and their addresses\n"
"\n"
"  -v, --volume PATH      (allow, deny, up) its mount point; else the first one\n"
"      --queues N         (up) processors that receive: 1 to 8; else one for\n"
"                         each processor, at most 4\n"
"      --ring BYTES       (up) memory of the volume per peer and queue: 256K to\n"
"                         16M, a power of two; else 1M\n"
"      --publish WHICH    (up) own: addresses of NAME; all: of all interfaces,\n"
"                         with routes to the peers' addresses; else own\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"Exit status: 0; 1 trouble; 2 wrong usage.\n"
"See stargate-net(8).\n";

static const struct object_command commands[] = {
	{ "allow", "", cmd_allow, false, NULL },
	{ "deny", "", cmd_deny, false, NULL },
	{ "up", "qrp", cmd_up, true, NULL },
	{ "down", "", cmd_down, true, NULL },
	{ "show", "", cmd_show, true, NULL },
	{ 0 }
};

static const struct option options[] = {
	{ "volume", required_argument, NULL, 'v' }, { "queues", required_argument, NULL, 'q' },
	{ "ring", required_argument, NULL, 'r' }, { "publish", required_argument, NULL, 'p' },
	{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { 0 }
};

static const struct object_rule rules[] = {
	{ 'q', "1 to 8", false }, { 'r', "256K to 16M, a power of two", true },
	{ 'p', "own or all", false }, { 0 }
};

int trouble(const struct call *c, int err, const char *why)
{
	return object_trouble(&c->o, err, why, 1);
}

static bool take_value(struct call *c, int opt, const char *text)
{
	switch (opt) {
	case 'q':
		return parse_number(text, 10, SG_NET_QUEUES, &c->queues) && c->queues;
	case 'r':
		return parse_size(text, &c->ring) && c->ring >= SG_NET_RING_MIN &&
		       c->ring <= SG_NET_RING_MAX && !(c->ring & (c->ring - 1));
	default:
		c->all = !strcmp(text, "all");
		return c->all || !strcmp(text, "own");
	}
}

static void take_flag(struct call *c, int opt)
{
	(void)c;
	(void)opt;
}

int main(int argc, char **argv)
{
	static const struct object_program program = {
		.name = "stargate-net", .usage = usage, .short_options = "+:v:hV",
		.options = options, .commands = commands, .rules = rules,
		.value = take_value, .flag = take_flag,
	};
	struct call c = { .ring = 1 << 20 };

	return object_main(&program, &c, argc, argv);
}
