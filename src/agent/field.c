/*
 * field.c - see field.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/field.h"

#include <errno.h>
#include <string.h>

#include "agent/harmless.h"
#include "base/text.h"

/* --- the schema ------------------------------------------------------------------------------- */

static const char *type_name(enum field_type type)
{
	switch (type) {
	case FIELD_TEXT:
		return "string";
	case FIELD_INTEGER:
		return "integer";
	case FIELD_BOOLEAN:
		return "boolean";
	case FIELD_TEXTS:
	case FIELD_OBJECTS:
		return "array";
	case FIELD_NAMED:
	case FIELD_OBJECT:
		return "object";
	}
	return "null";
}

/* Add the schema of what is inside: of elements, members or values. */
static int add_inner(json_t *schema, const struct field *f)
{
	static const char *const nothing[] = { NULL };
	int r = 0;

	if (f->type == FIELD_TEXTS)
		r = json_object_set_new(schema, "items", json_pack("{s:s}", "type", "string"));
	if (f->type == FIELD_NAMED)
		r = json_object_set_new(
			schema, "additionalProperties", json_pack("{s:s}", "type", "string"));
	if (f->type == FIELD_INTEGER && (f->min || f->max)) {
		r |= json_object_set_new(schema, "minimum", json_integer(f->min));
		r |= json_object_set_new(schema, "maximum", json_integer(f->max));
	}
	const char *const *words = f->words ? f->words : nothing;
	json_t *list = words[0] ? json_array() : NULL;
	for (; *words; words++)
		r |= json_array_append_new(list, json_string(*words));
	if (list)
		r |= json_object_set_new(schema, "enum", list);
	return r;
}

static json_t *type_schema(const struct field *f)
{
	if (f->flags & FIELD_NULL)
		return json_pack("[s, s]", type_name(f->type), "null");
	return json_string(type_name(f->type));
}

/* One field that holds no other ones. */
static json_t *leaf(const struct field *f)
{
	json_t *schema = json_object();
	int r = json_object_set_new(schema, "type", type_schema(f));

	if (f->help)
		r |= json_object_set_new(schema, "description", json_string(f->help));
	r |= add_inner(schema, f);
	if (r == 0)
		return schema;
	json_decref(schema);
	return NULL;
}

/* The tables are our own, and only two levels deep: an object may be inside an object, and that is all. */
static json_t *members(
	const struct field *fields, bool closed, json_t *(*each)(const struct field *))
{
	json_t *properties = json_object(), *required = json_array();
	json_t *schema = json_pack("{s:s}", "type", "object");
	int r = 0;

	for (const struct field *f = fields; f->name; f++) {
		r |= json_object_set_new(properties, f->name, each(f));
		if (f->flags & FIELD_REQUIRED)
			r |= json_array_append_new(required, json_string(f->name));
	}
	r |= json_object_set_new(schema, "properties", properties);
	if (json_array_size(required) > 0)
		r |= json_object_set(schema, "required", required);
	json_decref(required);
	if (closed)
		r |= json_object_set_new(schema, "additionalProperties", json_false());
	if (r == 0)
		return schema;
	json_decref(schema);
	return NULL;
}

static json_t *branch(const struct field *f)
{
	json_t *schema = leaf(f);

	if (!f->fields)
		return schema;
	json_t *inner = members(f->fields, false, leaf);
	int r;

	if (f->type == FIELD_OBJECTS) {
		r = json_object_set_new(schema, "items", inner);
	} else {
		r = json_object_update(schema, inner);
		json_decref(inner);
	}
	if (r == 0)
		return schema;
	json_decref(schema);
	return NULL;
}

json_t *field_schema(const struct field *fields, bool closed)
{
	return members(fields, closed, branch);
}

/* --- the check -------------------------------------------------------------------------------- */

const json_t *field_get(const json_t *value, const char *name)
{
	const json_t *found = json_object_get(value, name);

	return json_is_null(found) ? NULL : found;
}

static int unknown(const struct field *fields, const char *name, struct buffer *why)
{
	enum { NAMES_MAX = 16 };
	const char *names[NAMES_MAX];
	size_t count = 0;

	for (const struct field *f = fields; f->name && count < NAMES_MAX; f++)
		names[count++] = f->name;
	const char *nearest = text_nearest(name, names, count);
	size_t length = strlen(name);

	if (length > 40) /* cut, but not inside a character */
		for (length = 40; length > 0 && (name[length] & 0xc0) == 0x80; length--)
			;
	buffer_text(why, "there is no parameter `");
	harmless_add(why, name, length);
	buffer_text(why, "`");
	if (nearest) {
		buffer_format(why, "; did you mean `%s`?", nearest);
		return -EINVAL;
	}
	buffer_text(why, count ? "; there are:" : "; there are none");
	for (size_t i = 0; i < count; i++)
		buffer_format(why, " `%s`", names[i]);
	return -EINVAL;
}

static bool is_clean(const json_t *text)
{
	return json_string_length(text) == strlen(json_string_value(text));
}

static int check_text(const struct field *f, const json_t *value, struct buffer *why)
{
	if (!(f->flags & FIELD_BYTES) && !is_clean(value)) {
		buffer_format(why, "`%s` must not contain a NUL character", f->name);
		return -EINVAL;
	}
	if (f->max && json_string_length(value) > (size_t)f->max) {
		buffer_format(
			why, "`%s` is longer than %lld bytes", f->name, (long long)f->max);
		return -EINVAL;
	}
	if (!f->words)
		return 0;
	for (const char *const *word = f->words; *word; word++)
		if (!strcmp(*word, json_string_value(value)))
			return 0;
	buffer_format(why, "`%s` must be one of:", f->name);
	for (const char *const *word = f->words; *word; word++)
		buffer_format(why, " \"%s\"", *word);
	return -EINVAL;
}

/* To a JSON Schema 30.0 is an integer, and some clients write every number so. */
static bool is_integer(const json_t *value)
{
	static const double exact = 9007199254740992.0; /* 2^53 */
	double n = json_real_value(value);

	return json_is_integer(value) ||
		(json_is_real(value) && n >= -exact && n <= exact && n == (double)(int64_t)n);
}

static int64_t integer_value(const json_t *value)
{
	return json_is_real(value) ? (int64_t)json_real_value(value)
				   : json_integer_value(value);
}

static int check_integer(const struct field *f, const json_t *value, struct buffer *why)
{
	int64_t n = integer_value(value);

	if ((!f->min && !f->max) || (n >= f->min && n <= f->max))
		return 0;
	buffer_format(why, "`%s` must be between %lld and %lld", f->name, (long long)f->min,
		(long long)f->max);
	return -EINVAL;
}

/* Arrays and objects of texts. */
static int check_texts(const struct field *f, const json_t *value, struct buffer *why)
{
	const char *key;
	size_t index;
	json_t *each;
	bool good = f->type == FIELD_TEXTS ? json_is_array(value) : json_is_object(value);

	if (f->type == FIELD_TEXTS && good)
		json_array_foreach(value, index, each) good =
			good && json_is_string(each) && is_clean(each);
	if (f->type == FIELD_NAMED && good)
		json_object_foreach((json_t *)value, key, each) good =
			good && json_is_string(each) && is_clean(each);
	if (good)
		return 0;
	buffer_format(why,
		f->type == FIELD_TEXTS ? "`%s` must be an array of strings"
				       : "`%s` must be an object of strings",
		f->name);
	return -EINVAL;
}

static int check_one(const struct field *f, const json_t *value, struct buffer *why)
{
	bool good = true;

	switch (f->type) {
	case FIELD_TEXT:
		good = json_is_string(value);
		break;
	case FIELD_INTEGER:
		good = is_integer(value);
		break;
	case FIELD_BOOLEAN:
		good = json_is_boolean(value);
		break;
	case FIELD_TEXTS:
	case FIELD_NAMED:
		return check_texts(f, value, why);
	case FIELD_OBJECT:
		good = json_is_object(value);
		break;
	case FIELD_OBJECTS:
		good = json_is_array(value);
		break;
	}
	if (!good) {
		buffer_format(why, "`%s` must be of type %s", f->name, type_name(f->type));
		return -EINVAL;
	}
	if (f->type == FIELD_TEXT)
		return check_text(f, value, why);
	return f->type == FIELD_INTEGER ? check_integer(f, value, why) : 0;
}

int field_check(const struct field *fields, const json_t *value, struct buffer *ret_why)
{
	const char *name;
	json_t *each;

	json_object_foreach((json_t *)value, name, each)
	{
		const struct field *f = fields;

		while (f->name && strcmp(f->name, name) != 0)
			f++;
		if (!f->name)
			return unknown(fields, name, ret_why);
	}
	for (const struct field *f = fields; f->name; f++) {
		const json_t *found = field_get(value, f->name);

		if (!found && (f->flags & FIELD_REQUIRED)) {
			buffer_format(ret_why, "`%s` is missing: %s", f->name, f->help);
			return -EINVAL;
		}
		int r = found ? check_one(f, found, ret_why) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- values ----------------------------------------------------------------------------------- */

const char *field_text(const json_t *value, const char *name, const char *otherwise)
{
	const json_t *found = field_get(value, name);

	return found ? json_string_value(found) : otherwise;
}

int64_t field_integer(const json_t *value, const char *name, int64_t otherwise)
{
	const json_t *found = field_get(value, name);

	return found ? integer_value(found) : otherwise;
}

bool field_flag(const json_t *value, const char *name, bool otherwise)
{
	const json_t *found = field_get(value, name);

	return found ? json_is_true(found) : otherwise;
}
