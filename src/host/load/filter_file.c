/*
 * filter_file.c - what a compiled filter file must be like. See filter_cache.h.
 *
 * Runs in: the launcher and carrel-policy, outside. PURE.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>

#include "host/load/filter_cache.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

static void add_text(struct sha256 *s, const char *text)
{
	sha256_update(s, text, strlen(text) + 1);
}

void filter_cache_inputs(const char *base, const char *const *lines, size_t count,
	uint8_t ret_digest[SHA256_SIZE])
{
	const struct embedded_text *shipped = embedded_find("filters.digest");
	const uint32_t numbers[] = { FILTER_FILE_VERSION, NATIVE_ARCH };
	struct sha256 s;

	sha256_init(&s);
	add_text(&s, "carrel filter");
	add_text(&s, CARREL_VERSION);
	add_text(&s, shipped ? shipped->text : "");
	sha256_update(&s, numbers, sizeof(numbers));
	add_text(&s, base);
	for (size_t i = 0; i < count; i++)
		add_text(&s, lines[i]);
	sha256_final(&s, ret_digest);
}

/* One instruction, with @left more behind it: only what carrel-policy writes. */
static bool is_sound(const struct sock_filter *i, size_t left)
{
	switch (i->code) {
	case BPF_RET | BPF_K:
		return true;
	case BPF_LD | BPF_W | BPF_ABS:
		return left > 0 && i->k % 4 == 0 && i->k < sizeof(struct seccomp_data);
	case BPF_ALU | BPF_AND | BPF_K:
		return left > 0;
	case BPF_JMP | BPF_JA:
		return i->k < left;
	case BPF_JMP | BPF_JEQ | BPF_K:
	case BPF_JMP | BPF_JGT | BPF_K:
	case BPF_JMP | BPF_JGE | BPF_K:
	case BPF_JMP | BPF_JSET | BPF_K:
		return i->jt < left && i->jf < left;
	default:
		return false;
	}
}

int filter_cache_accept(const void *data, size_t size, const uint8_t inputs[SHA256_SIZE])
{
	const struct filter_file_header *h = data;
	uint8_t digest[SHA256_SIZE];

	if (size < sizeof(*h) || memcmp(h->magic, FILTER_FILE_MAGIC, sizeof(h->magic)) != 0 ||
		h->version != FILTER_FILE_VERSION || h->arch != NATIVE_ARCH || h->reserved)
		return -EINVAL;
	if (h->count == 0 || h->count > FILTER_FILE_COUNT_MAX ||
		size != sizeof(*h) + h->count * sizeof(struct sock_filter))
		return -EINVAL;
	const struct sock_filter *code = (const void *)(h + 1);
	sha256(code, h->count * sizeof(*code), digest);
	if (memcmp(h->inputs, inputs, SHA256_SIZE) != 0 ||
		memcmp(h->content, digest, SHA256_SIZE) != 0)
		return -EINVAL;
	for (size_t i = 0; i < h->count; i++)
		if (!is_sound(&code[i], h->count - i - 1))
			return -EINVAL;
	return (int)h->count;
}
