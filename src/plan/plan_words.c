/*
 * plan_words.c - what is in a plan, in words; see plan_print.h.
 *
 * Runs in: carrel-policy. PURE.
 */
#include <string.h>
#include <sys/resource.h>

#include "plan/plan_print.h"
#include "plan/settings.h"

const struct plan_flag_word plan_flag_words[] = {
	{ OPF_RDONLY, "read-only" },
	{ OPF_NOEXEC, "noexec" },
	{ OPF_RECURSIVE, "recursive" },
	{ OPF_IDMAP, "idmapped" },
	{ OPF_LINK, "link" },
	{ OPF_DEV, "device" },
	{ OPF_OWNED, "owned" },
	{ OPF_CHECKED, "checked" },
	{ OPF_SHARED, "shared with the supervisor" },
	{ 0, NULL },
};

const char *const plan_wall_states[] = {
	[WALL_UNAVAILABLE] = "unavailable",
	[WALL_OFF] = "off",
	[WALL_ON] = "on",
};

const char *const plan_workspace_modes[] = {
	[WORKSPACE_DIRECT] = "direct",
	[WORKSPACE_RO] = "ro",
	[WORKSPACE_OVERLAY] = "overlay",
};

const char *const plan_tty_modes[] = {
	[TTY_AUTO] = "auto",
	[TTY_YES] = "yes",
	[TTY_NO] = "no",
};

const char *plan_word_source(const struct source *source)
{
	if (source->file)
		return source->file;
	return source->layer == LAYER_DEFAULT ? "default" : "unknown";
}

const char *plan_word_rlimit(unsigned resource)
{
	const struct setting *s = plan_rlimit_setting(resource);

	if (s)
		return s->name;
	return resource == RLIMIT_CORE ? "core" : resource == RLIMIT_NPROC ? "pids" : "unknown";
}

const struct setting *plan_rlimit_setting(unsigned resource)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings_table[i].rlimit == resource + 1)
			return &settings_table[i];
	return NULL;
}

const char *plan_word_right(unsigned bit)
{
	/* The order of include/uapi/linux/landlock.h. */
	static const char *const words[] = { "execute", "write-file", "read-file", "read-dir",
		"remove-dir", "remove-file", "make-char", "make-dir", "make-reg", "make-sock",
		"make-fifo", "make-block", "make-sym", "refer", "truncate", "ioctl-dev",
		"resolve-unix" };

	return bit < sizeof(words) / sizeof(words[0]) ? words[bit] : NULL;
}

const char *plan_view_text(const struct plan_view *view, const char *text)
{
	const char *id = view->plan->facts->session_name + strlen("carrel-");
	struct arena *arena = view->plan->arena;

	/* One occurrence in each turn: no text has many. */
	for (const char *at; text && view->session && (at = strstr(text, id));)
		text = arena_format(arena, "%.*s%s%s", (int)(at - text), text, view->session,
			at + strlen(id));
	return text;
}
