/*
 * rules.c - see rules.h.
 *
 * Runs in: S.
 */
#include "host/egress/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/writer.h"

enum { BUFFER_SIZE = 2048, PLACE_MAX = 512 };

static void put_number(struct writer *w, const char *name, const struct number_value *n)
{
	if (!n->set)
		return;
	writer_text(w, name);
	writer_char(w, ' ');
	writer_number(w, n->value);
	writer_char(w, '\n');
}

/* Where it was written. The name of a file can hold anything: what would end the line is shown as a question mark. */
static void put_place(struct writer *w, const struct source *source, const char *setting)
{
	char place[PLACE_MAX], *at = place;

	policy_format_source(source, setting, place, sizeof(place));
	for (; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	writer_text(w, place);
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

static void put_rules(struct writer *w, const struct policy *p, const char *login)
{
	put_number(w, "connections", &p->net_connections);
	put_number(w, "bytes", &p->net_bytes);
	if (!p->tls_name.on)
		writer_text(w, "tls-name no\n");
	put_text(w, "resolver", p->net_resolver.value);
	if (p->egress_proxy.value) /* policy_read_proxy() has written the scheme */
		put_text(w, "proxy", p->egress_proxy.value + strlen("http://"));
	put_text(w, "proxy-login", login);
	for (size_t i = 0; i < p->net_rule_count; i++) {
		const struct net_rule *r = &p->net_rules[i];
		const char *setting = r->rule->deny ? "deny" : "allow";

		writer_text(w, setting);
		writer_char(w, ' ');
		writer_text(w, r->text);
		writer_char(w, '\t');
		put_place(w, &r->source, setting);
		writer_char(w, '\n');
	}
}

int egress_rules(const struct policy *policy, const char *login)
{
	char buffer[BUFFER_SIZE];
	struct writer w;
	autofd int fd = memfd_create("carrel-rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	writer_init(&w, buffer, sizeof(buffer), fd_write_to, &fd);
	put_rules(&w, policy, login);
	int r = writer_finish(&w);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0 ||
		fcntl(fd, F_ADD_SEALS,
			F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return take_fd(&fd);
}
