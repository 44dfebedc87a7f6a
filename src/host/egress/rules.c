/*
 * rules.c - see rules.h.
 *
 * Runs in: S.
 */
#include "host/egress/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/autofree.h"
#include "base/fd.h"
#include "base/writer.h"
#include "host/egress/wire.h"

enum {
	BUFFER_SIZE = 1 << 16, /* a system call may cost more than a hundred rules */
	PLACE_MAX = 512,
	RULE_SIZE_MAX = sizeof(struct egress_rule_head) + 2 * NETRULE_PORT_MAX + 16 + PLACE_MAX
};
_Static_assert((int)PLACE_MAX > (int)NETRULE_NAME_MAX && RULE_SIZE_MAX <= BUFFER_SIZE,
	"every rule fits");

static void put_number(struct writer *w, const char *name, const struct number_value *n)
{
	if (!n->set)
		return;
	writer_text(w, name);
	writer_char(w, ' ');
	writer_number(w, n->value);
	writer_char(w, '\n');
}

static void put_text(struct writer *w, const char *name, const char *value)
{
	if (!value)
		return;
	writer_text(w, name);
	writer_char(w, ' ');
	writer_text(w, value);
	writer_char(w, '\n');
}

static void put_settings(struct writer *w, const struct policy *p, const char *login)
{
	put_number(w, "connections", &p->net_connections);
	put_number(w, "bytes", &p->net_bytes);
	if (!p->tls_name.on)
		writer_text(w, "tls-name no\n");
	put_text(w, "resolver", p->net_resolver.value);
	if (p->egress_proxy.value) /* policy_read_proxy() has written the scheme */
		put_text(w, "proxy", p->egress_proxy.value + strlen("http://"));
	put_text(w, "proxy-login", login);
	writer_bytes(w, "", 1);
}

/* --- the rules --------------------------------------------------------------------------------- */

struct output {
	int fd, error;
	size_t used;
	char *bytes; /* BUFFER_SIZE of them */
};

static void flush(struct output *o)
{
	int r = o->error ? o->error : fd_write_all(o->fd, o->bytes, o->used);

	o->used = 0;
	o->error = r < 0 ? r : 0;
}

static void put_rule(struct output *o, const struct egress_rule_head *head,
	const struct netrule *rule, const char *name)
{
	if (BUFFER_SIZE - o->used < RULE_SIZE_MAX)
		flush(o);
	char *at = o->bytes + o->used;

	memcpy(at, head, sizeof(*head));
	at += sizeof(*head);
	for (unsigned i = 0; i < head->port_count; i++, at += sizeof(rule->ports[i]))
		memcpy(at, &rule->ports[i], sizeof(rule->ports[i]));
	if (head->kind == NETRULE_BLOCK)
		at = mempcpy(at, rule->address, sizeof(rule->address));
	/* For a name a call of memcpy() costs more than this loop. */
	for (unsigned i = 0; i < head->name_size; i++)
		*at++ = name[i];
	o->used = (size_t)(at - o->bytes);
}

/* The source of the rules that follow: the part that they share is written once. */
struct origin {
	const char *file;
	enum layer layer;
	bool deny, begun, numbered;
};

static bool is_from(const struct origin *o, const struct net_rule *rule)
{
	return o->begun && o->file == rule->source.file && o->layer == rule->source.layer &&
		o->deny == rule->rule->deny;
}

/* On the command line a place has no number. */
static void put_origin(struct output *o, struct origin *origin, const struct net_rule *rule)
{
	char whole[PLACE_MAX], place[PLACE_MAX];
	const char *setting = rule->rule->deny ? "deny" : "allow";
	struct source file = rule->source;

	file.line = 0;
	policy_format_source(&rule->source, setting, whole, sizeof(whole));
	policy_format_source(&file, setting, place, sizeof(place));
	*origin = (struct origin){ .file = rule->source.file,
		.layer = rule->source.layer,
		.deny = rule->rule->deny,
		.begun = true,
		.numbered = strcmp(whole, place) != 0 };
	const struct egress_rule_head head = { .kind = EGRESS_RULE_ORIGIN,
		.name_size = (uint16_t)(strlen(place) + 1) };
	put_rule(o, &head, NULL, place);
}

static int put_rules(int fd, const struct policy *p)
{
	autofree char *bytes = malloc(BUFFER_SIZE);
	struct output o = { .fd = fd, .bytes = bytes };
	struct origin origin = { 0 };

	if (!bytes)
		return -ENOMEM;
	for (size_t i = 0; i < p->net_rule_count; i++) {
		const struct net_rule *r = &p->net_rules[i];
		const struct netrule *rule = r->rule;

		if (!is_from(&origin, r))
			put_origin(&o, &origin, r);
		const struct egress_rule_head head = {
			.line = origin.numbered ? r->source.line : 0,
			.kind = (uint8_t)rule->kind,
			.deny = rule->deny,
			.family = rule->family,
			.bits = rule->bits,
			.port_count = rule->port_count,
			.name_size = rule->name ? (uint16_t)(strlen(rule->name) + 1) : 0,
		};
		put_rule(&o, &head, rule, rule->name);
	}
	flush(&o);
	return o.error;
}

static int put_all(int fd, const struct policy *policy, const char *login)
{
	char buffer[512];
	struct writer w;

	writer_init(&w, buffer, sizeof(buffer), fd_write_to, &fd);
	put_settings(&w, policy, login);
	int r = writer_finish(&w);
	return r < 0 ? r : put_rules(fd, policy);
}

int egress_rules(const struct policy *policy, const char *login)
{
	autofd int fd = memfd_create("carrel-rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	int r = put_all(fd, policy, login);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0 ||
		fcntl(fd, F_ADD_SEALS,
			F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return take_fd(&fd);
}
