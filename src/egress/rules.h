/*
 * rules.h - what carrel-egress reads at its start: the rules, the limits, the resolvers and the hosts.
 *
 * Runs in: carrel-egress.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "plan/netrule.h"

enum {
	RESOLVERS_MAX = 3,
	HOSTS_SIZE_MAX = 1 << 16,
	RULES_SIZE_MAX = 1 << 24,
	RULES_SOURCE_MAX = 576
};

struct resolver {
	struct sockaddr_storage address;
	socklen_t size;
};

struct rule_source {
	const char *origin; /* the file, or what is said of a rule that was added later */
	uint32_t line;      /* 0: it has none */
};

struct rules {
	struct arena arena;
	const char *given, *given_end; /* what rules_take() reads */
	struct netrules *set;
	struct netrule *list; /* those of the start */
	struct rule_source
		*sources;     /* of each rule by its number, those added later included */
	size_t count;         /* of all */
	size_t start_count;   /* of those of the start */
	uint64_t connections; /* at one time, at most; 0: not said */
	uint64_t bytes;       /* of all connections together; 0: no limit */
	bool any_name;        /* tls-name no */
	const struct netrule
		*proxy; /* the host and the one port that names are reached by; NULL: none */
	const char *proxy_login; /* base64; NULL: none */
	struct resolver resolvers[RESOLVERS_MAX];
	size_t resolver_count;
	char *hosts; /* the text of /etc/hosts, ends with a NUL; may be empty */
};

/*
 * rules_read - read the settings of wire.h from @fd, but not yet the rules; then /etc/resolv.conf if no line names a resolver, and /etc/hosts.
 * A file that does not exist counts as empty. 0, or -errno with @e.
 */
MUST_CHECK int rules_read(struct rules *ret, int fd, struct error *e);

/*
 * rules_take - read the rules themselves from what rules_read() has kept. The program does this when it is confined, while the session
 * is still being made. 0, or -errno with @e.
 */
MUST_CHECK int rules_take(struct rules *rules, struct error *e);

/* rules_add - add a line "allow RULE<TAB>SOURCE" or "deny ...", after all others. 0, or -errno with @e. */
MUST_CHECK int rules_add(struct rules *rules, const char *line, struct error *e);

/* rules_source - where the rule of that number was written, cut to @size bytes. False: there is no such rule. */
bool rules_source(const struct rules *rules, int32_t number, char *ret, size_t size);

/* rules_remove - take back a rule that rules_add() has added. 0, or -ENOENT: there is none of that number. */
MUST_CHECK int rules_remove(struct rules *rules, int32_t number);

/*
 * rules_hosts - the addresses of @name in the text of hosts(5) @hosts, @most of each family: network order.
 * Returns whether there is a line for it.
 */
bool rules_hosts(const char *hosts, const char *name, size_t most, uint8_t (*ret_four)[4],
	size_t *ret_four_count, uint8_t (*ret_six)[16], size_t *ret_six_count);
