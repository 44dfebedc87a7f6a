/*
 * filter_run.c - an interpreter of classic BPF as seccomp has it, to try programs out.
 *
 * Runs in: mkpolicy, carrel-policy, tests. PURE. See: kernel/seccomp.c seccomp_check_filter() and
 * net/core/filter.c; what libseccomp and filter_gen.c write is understood, all else is an error.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>

#include "policy/filter.h"

struct machine {
	const struct sock_filter *code;
	size_t count;
	size_t at;
	uint32_t accumulator;
};

static int load_data(struct machine *m, const struct seccomp_data *data, uint32_t offset,
	struct filter_outcome *out)
{
	if (offset % 4 != 0 || offset > sizeof(*data) - 4)
		return -EINVAL;
	memcpy(&m->accumulator, (const char *)data + offset, 4);
	if (offset != offsetof(struct seccomp_data, nr) &&
		offset != offsetof(struct seccomp_data, arch))
		out->used_args = true;
	m->at++;
	return 0;
}

static int jump(struct machine *m, const struct sock_filter *i)
{
	bool holds = false;
	uint32_t a = m->accumulator;

	switch (i->code) {
	case BPF_JMP | BPF_JA:
		if (i->k >= m->count - m->at - 1)
			return -EINVAL;
		m->at += 1 + (size_t)i->k;
		return 0;
	case BPF_JMP | BPF_JEQ | BPF_K:
		holds = a == i->k;
		break;
	case BPF_JMP | BPF_JGT | BPF_K:
		holds = a > i->k;
		break;
	case BPF_JMP | BPF_JGE | BPF_K:
		holds = a >= i->k;
		break;
	case BPF_JMP | BPF_JSET | BPF_K:
		holds = (a & i->k) != 0;
		break;
	default:
		return -EINVAL;
	}
	m->at += 1 + (size_t)(holds ? i->jt : i->jf);
	return 0;
}

static int run_instruction(
	struct machine *m, const struct seccomp_data *data, struct filter_outcome *out)
{
	const struct sock_filter *i = &m->code[m->at];

	out->steps++;
	if (BPF_CLASS(i->code) == BPF_JMP)
		return jump(m, i);
	if (i->code == (BPF_LD | BPF_W | BPF_ABS))
		return load_data(m, data, i->k, out);
	if (i->code == (BPF_ALU | BPF_AND | BPF_K)) {
		m->accumulator &= i->k;
		m->at++;
		return 0;
	}
	return -EINVAL;
}

int filter_run(const struct sock_filter *code, size_t count, const struct seccomp_data *data,
	struct filter_outcome *ret)
{
	struct machine m = { code, count, 0, 0 };
	struct filter_outcome out = { 0 };

	/* Jumps only go forward: this ends. */
	while (m.at < count) {
		if (code[m.at].code == (BPF_RET | BPF_K)) {
			out.steps++;
			out.action = code[m.at].k;
			*ret = out;
			return 0;
		}
		int r = run_instruction(&m, data, &out);
		if (r < 0)
			return r;
	}
	return -EINVAL;
}
