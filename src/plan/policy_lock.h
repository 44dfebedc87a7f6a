/*
 * policy_lock.h - what the judges of locked settings share. For policy_lock*.c only.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#pragma once

#include "plan/policy_line.h"

struct policy_judge {
	struct policy *p;
	const struct policy *locked;
	const struct word_rule *lock; /* the line that is being judged */
	struct error *e;
};

/* policy_fail_locked - the line at @source, of @setting, loosens what is locked. Returns -EPERM. */
int policy_fail_locked(
	const struct policy_judge *j, const struct source *source, const char *setting);

/*
 * policy_is_later - whether it was said after the system policy. The rules of another profile than
 * the system's choice count as later too: they came with that choice.
 */
bool policy_is_later(const struct policy_judge *j, const struct source *source);

/* policy_same_text - equal, or both NULL. */
bool policy_same_text(const char *a, const char *b);

/* policy_judge_paths - `lock read`, write, bind, tmpfs, dev: no additions. 0 or -EPERM. */
MUST_CHECK int policy_judge_paths(const struct policy_judge *j, const struct setting *s);

/*
 * policy_judge_shadowed - `lock hide`, `lock protect`: nothing shows such a path in another way, and
 * what another profile left out is put back. 0, -EPERM or -ENOMEM.
 */
MUST_CHECK int policy_judge_shadowed(const struct policy_judge *j, enum path_kind kind);
