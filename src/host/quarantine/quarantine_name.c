/*
 * quarantine_name.c - the name of a thing in quarantine. See quarantine.h.
 *
 * Runs in: the supervisor (host side).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "host/quarantine/quarantine.h"

enum {
	NAME_PLAIN = 200, /* encoded names up to this length stay whole */
	NAME_CUT = 180,
};

void quarantine_name(const char *path, size_t length, char *ret_name)
{
	static const char hex[] = "0123456789ABCDEF";
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
	size_t at = 0, cut = 0;

	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)path[i];
		bool plain = c > 0x20 && c < 0x7f && c != '/' && c != '%' && c != '~';

		hash = (hash ^ c) * 0x100000001b3u;
		if (at <= NAME_CUT)
			cut = at; /* never in the middle of an escape */
		if (at > NAME_PLAIN)
			continue;
		if (plain) {
			ret_name[at++] = (char)c;
			continue;
		}
		ret_name[at++] = '%';
		ret_name[at++] = hex[c >> 4];
		ret_name[at++] = hex[c & 15];
	}
	if (at > NAME_PLAIN) {
		(void)snprintf(ret_name + cut, 18, "~%016llx", (unsigned long long)hash);
		at = cut + 17;
	}
	(void)snprintf(ret_name + at, 13, ".quarantined");
}
