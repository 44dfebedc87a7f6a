/*
 * why_call.c - what the filter of a session does to a system call, and which of its lines decides.
 *
 * Runs in: carrel-policy, outside, as the caller.
 *
 * It reads the filter's text; mkpolicy and `carrel-policy compile` have shown that the compiled program is equal to it
 * (filter_check()).
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>

#include "plan/embedded.h"
#include "policy/why.h"

static int no_memory(struct error *e)
{
	return error_no_memory(e, "policy");
}

/* --- the filter ------------------------------------------------------------------------------- */

/* Lines of the policy get numbers from this one on, in their order: that tells them from lines of shipped texts. */
enum { OWN_LINE = 1 << 20 };

static int add_policy_rules(
	struct why *w, const struct policy *policy, struct filter *f, struct error *e)
{
	char place[512];
	int r = 0;

	for (size_t i = 0; i < policy->syscall_rule_count && r >= 0; i++) {
		const struct syscall_rule *rule = &policy->syscall_rules[i];

		policy_format_source(&rule->source, "syscall", place, sizeof(place));
		const char *copy = arena_copy(&w->arena, place, strlen(place));
		r = copy ? filter_parse_line(f, rule->text, copy, OWN_LINE + (unsigned)i, e)
			 : no_memory(e);
	}
	return r;
}

static int add_live_rules(struct why *w, struct filter *f, struct error *e)
{
	struct why_line line;
	const char *text;
	int r = 0;

	for (unsigned n = 0; r >= 0 && why_live_line(w, "syscall", n, &text, &line); n++)
		r = filter_parse_line(f, text, line.place, OWN_LINE + n, e);
	return r;
}

static const char *live_filter(struct why *w)
{
	struct policy named = { 0 };
	struct why_line line;
	const char *text;

	if (why_live_line(w, "syscalls", 0, &text, &line))
		named.syscalls.value = text;
	named.net = why_live_line(w, "net", 0, &text, &line) && strcmp(text, "none") != 0
		? NET_ALLOW
		: NET_NONE;
	named.nested.on = why_live_line(w, "nested", 0, &text, &line) && !strcmp(text, "yes");
	return prepare_filter(&named);
}

int why_filter(struct why *w, const struct prepared *p, struct filter *ret, uint32_t *ret_arch,
	struct error *e)
{
	const struct filter_texts texts = { embedded_texts, embedded_text_count };
	const char *name = p ? prepare_filter(&p->policy) : live_filter(w);
	const struct embedded_filter *compiled = embedded_find_filter(name);
	const char *file = arena_format(&w->arena, "%s.policy", name);

	if (!file)
		return no_memory(e);
	if (!compiled)
		return error_set(e, ERROR_POLICY, "policy", ENOENT, name,
			"there is no such system-call filter");
	filter_init(ret, &w->arena);
	int r = filter_parse(ret, &texts, file, e);
	if (r >= 0)
		r = p ? add_policy_rules(w, &p->policy, ret, e) : add_live_rules(w, ret, e);
	*ret_arch = compiled->arch;
	return r;
}

static int errno_of(uint32_t action)
{
	if (action == SECCOMP_RET_ALLOW)
		return 0;
	return (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO
		? (int)(action & SECCOMP_RET_DATA)
		: ESHUTDOWN;
}

int why_call_outcome(const struct filter *filter, uint32_t arch, long nr,
	const uint64_t args[6], const struct filter_rule **ret_rule)
{
	struct seccomp_data data = { .nr = (int)nr, .arch = arch };

	memcpy(data.args, args, sizeof(data.args));
	return errno_of(filter_eval(filter, arch, &data, ret_rule));
}

/* --- its lines -------------------------------------------------------------------------------- */

/* Line @number of one of the shipped texts, without what stands around it. */
static const char *shipped_line(struct why *w, const char *file, unsigned number)
{
	const struct embedded_text *text = embedded_find(file);
	const char *at = text ? text->text : NULL;

	for (unsigned i = 1; at && i < number; i++) {
		at = strchr(at, '\n');
		at += at != NULL;
	}
	if (!at)
		return NULL;
	size_t length = strcspn(at, "\n#");
	while (length && (at[length - 1] == ' ' || at[length - 1] == '\t'))
		length--;
	return arena_copy(&w->arena, at, length);
}

int why_filter_line(struct why *w, const struct prepared *p, const char *file, unsigned number,
	struct why_line *ret)
{
	const char *text;

	if (number >= OWN_LINE && !p)
		return why_live_line(w, "syscall", number - OWN_LINE, &text, ret) ? 0 : -EINVAL;
	*ret = (struct why_line){ .place = file };
	if (number >= OWN_LINE) {
		ret->text = arena_format(&w->arena, "syscall %s",
			p->policy.syscall_rules[number - OWN_LINE].text);
	} else {
		ret->text = shipped_line(w, file, number);
		ret->place = arena_format(&w->arena, "%s:%u", file, number);
	}
	return ret->text && ret->place ? 0 : -ENOMEM;
}

static int add_line(struct why *w, const struct prepared *p, const char *file, unsigned number,
	struct why_answer *a)
{
	if (a->line_count == WHY_LINES_MAX)
		return 0;
	return why_filter_line(w, p, file, number, &a->lines[a->line_count++]);
}

/*
 * Add the lines that name the call, the last first, down to the first without tests, which decides if no other line
 * does. Sets the outcome if it is the same for all arguments.
 */
static int judge(struct why *w, const struct prepared *p, const struct filter *f, uint32_t arch,
	int nr, struct why_answer *a)
{
	uint32_t action = f->default_action;
	bool same = true, ended = false;
	int r = 0;

	for (size_t i = f->rule_count; i > 0 && !ended && r >= 0; i--) {
		const struct filter_rule *rule = &f->rules[i - 1];

		if (filter_rule_number(rule, arch) != nr)
			continue;
		r = add_line(w, p, rule->file, rule->line, a);
		same &= a->line_count == 1 || rule->action == action;
		action = rule->action;
		ended = rule->test_count == 0;
	}
	if (r >= 0 && !ended) {
		same &= a->line_count == 0 || f->default_action == action;
		r = add_line(w, p, f->default_file, f->default_line, a);
	}
	a->outcome[TRY_CALL] = !same ? WHY_UNKNOWN
		: ended              ? errno_of(action)
				     : errno_of(f->default_action);
	return r;
}

static const char *word_for(int outcome)
{
	switch (outcome) {
	case 0:
		return "allowed";
	case WHY_UNKNOWN:
		return "depends";
	case ENOSYS:
		return "unknown";
	case ESHUTDOWN:
		return "killed";
	default:
		return "refused";
	}
}

int why_call(struct why *w, const struct prepared *p, const char *asked, struct why_answer *a,
	struct error *e)
{
	struct filter f;
	uint32_t arch = 0;

	for (int i = 0; i < TRY_COUNT; i++)
		a->outcome[i] = WHY_UNKNOWN;
	int r = why_filter(w, p, &f, &arch, e);
	if (r < 0)
		return r;
	int nr = filter_number(asked, arch);
	if (nr < 0) {
		a->seen = "absent";
		a->because = "this machine's architecture has no such system call";
		a->outcome[TRY_CALL] = ENOSYS;
		return 0;
	}
	r = judge(w, p, &f, arch, nr, a);
	if (r < 0)
		return no_memory(e);
	a->seen = word_for(a->outcome[TRY_CALL]);
	if (!strcmp(a->seen, "depends"))
		a->because =
			"the first line that fits the arguments decides, the last one otherwise";
	return 0;
}

int why_call_made(struct why *w, const struct prepared *p, long number, const uint64_t args[6],
	struct why_answer *a, struct error *e)
{
	const struct filter_rule *rule = NULL;
	char name[64];
	struct filter f;
	uint32_t arch = 0;
	int r = why_filter(w, p, &f, &arch, e);

	if (r < 0)
		return r;
	for (int i = 0; i < TRY_COUNT; i++)
		a->outcome[i] = WHY_UNKNOWN;
	filter_name((uint32_t)number, arch, name, sizeof(name));
	a->kind = WHY_CALL;
	a->subject = arena_copy(&w->arena, name, strlen(name));
	a->outcome[TRY_CALL] = why_call_outcome(&f, arch, number, args, &rule);
	a->seen = word_for(a->outcome[TRY_CALL]);
	r = a->subject ? add_line(w, p, rule ? rule->file : f.default_file,
				 rule ? rule->line : f.default_line, a)
		       : -ENOMEM;
	return r < 0 ? no_memory(e) : 0;
}
