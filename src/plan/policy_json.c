/*
 * policy_json.c - the effective policy as one JSON document.
 *
 * Runs in: carrel-policy. PURE: bytes go to the caller's function.
 */
#include <string.h>

#include "base/json.h"
#include "plan/policy_line.h"

static void json_source(struct json *j, const struct source *source)
{
	json_key(j, "source");
	json_object_begin(j);
	json_key(j, "layer");
	json_string(j, policy_layer_name(source->layer));
	if (source->layer != LAYER_DEFAULT && source->file) {
		json_key(j, "file");
		json_string(j, source->file);
		if (source->line) {
			json_key(j, "line");
			json_unsigned(j, source->line);
		}
	}
	json_object_end(j);
}

static void json_member(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

static void json_path(struct json *j, const struct setting *s, const struct policy_line *l)
{
	if (l->text)
		json_member(j, "path", l->text);
	if (l->dest)
		json_member(j, "dest", l->dest);
	json_key(j, "optional");
	json_bool(j, l->optional);
	if (s->kind == KIND_GLOB_RULE) {
		json_key(j, "glob");
		json_bool(j, l->glob);
	}
	if (s->kind == KIND_BIND)
		json_member(j, "mode", l->kind == PATH_BIND_RW ? "rw" : "ro");
	if (s->kind == KIND_TMPFS && l->number) {
		json_key(j, "size");
		json_unsigned(j, l->number);
	}
}

static void put_rule(void *context, const struct setting *s, const struct policy_line *l)
{
	struct json *j = context;

	json_object_begin(j);
	json_member(j, "setting", s->name);
	switch (s->kind) {
	case KIND_PATH_RULE:
	case KIND_GLOB_RULE:
	case KIND_DEVICE:
	case KIND_BIND:
	case KIND_TMPFS:
		json_path(j, s, l);
		break;
	case KIND_PROMOTE:
		json_member(j, "glob", l->text);
		json_member(j, "dir", l->dest);
		break;
	case KIND_ENV:
		json_member(j, "name", l->text);
		if (l->dest)
			json_member(j, "value", l->dest);
		break;
	case KIND_PUBLISH:
	case KIND_PASS_FD:
		json_member(j, "value", l->dest);
		break;
	case KIND_FLAG:
		json_key(j, "value");
		json_bool(j, l->number != 0);
		break;
	case KIND_SIZE:
	case KIND_DURATION:
	case KIND_COUNT_NUMBER:
	case KIND_CHARACTERS:
	case KIND_CPUS:
		json_key(j,
			s->kind == KIND_DURATION       ? "milliseconds"
				: s->kind == KIND_CPUS ? "thousandths"
						       : "value");
		json_unsigned(j, l->number);
		break;
	default:
		json_member(j, "value", l->text);
		break;
	}
	json_source(j, &l->source);
	json_object_end(j);
}

int policy_print_json(const struct policy *p, writer_fn write, void *context)
{
	char buffer[2048];
	struct json j;

	json_init(&j, buffer, sizeof(buffer), write, context);
	json_object_begin(&j);
	json_key(&j, "profile");
	json_object_begin(&j);
	json_member(&j, "value", p->profile.value);
	json_source(&j, &p->profile.source);
	json_object_end(&j);
	json_key(&j, "locks");
	json_array_begin(&j);
	for (size_t i = 0; i < p->lock_count; i++) {
		json_object_begin(&j);
		json_member(&j, "setting", p->locks[i].word);
		json_source(&j, &p->locks[i].source);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_key(&j, "rules");
	json_array_begin(&j);
	policy_walk(p, put_rule, &j);
	json_array_end(&j);
	json_object_end(&j);
	return json_finish(&j);
}
