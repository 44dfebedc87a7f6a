/*
 * promote_fixture.h - a scratch and a destination: on one file system, or on two.
 *
 * Runs in: the tests of promotion, as root and as an ordinary user.
 */
#pragma once

#include "tree_fixture.h"

#include "host/promote/promote.h"
#include "host/promote/promote_temp.h"

#define MEMORY (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp")

struct fixture {
	struct tree scratch;
	struct tree dest;
	bool crosses; /* they are on two file systems */
	struct promote_result result;
	struct error error;
};

/* The destination is in memory: what is brought to a busy disk there would take its time. */
static inline struct fixture *fixture_make(const char *scratch)
{
	static struct fixture f;

	f = (struct fixture){ .crosses = false };
	tree_make(&f.dest, MEMORY);
	tree_make(&f.scratch, scratch);
	f.crosses = stat_of(f.dest.fd, ".").st_dev != stat_of(f.scratch.fd, ".").st_dev;
	return &f;
}

static inline int setup_same(void **state)
{
	*state = fixture_make(MEMORY);
	return 0;
}

static inline int setup_cross(void **state)
{
	*state = fixture_make("/tmp");
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	tree_drop(&f->scratch);
	tree_drop(&f->dest);
	return 0;
}

/* move - promote() @source to @name in the destination. */
static inline int move_with(struct fixture *f, const char *source, const char *name,
	const struct promote_options *o)
{
	const struct promote_place to = {
		.fd = f->dest.fd, .path = f->dest.path, .name = name
	};

	f->error = (struct error){ .code = ERROR_NONE };
	f->result = (struct promote_result){ .how = PROMOTE_NOT };
	return promote(f->scratch.fd, source, &to, o, &f->result, &f->error);
}

static inline int move(struct fixture *f, const char *source, const char *name)
{
	return move_with(f, source, name, &(struct promote_options){ .copy = false });
}

static inline void moves(struct fixture *f, const char *source, const char *name)
{
	if (move(f, source, name) < 0)
		fail_msg("%s: %s: %s", f->error.what, f->error.on, strerror(f->error.errnum));
}

/* how_moved - by rename where that is possible, else by one of the two copies. */
static inline void assert_moved_cheaply(const struct fixture *f)
{
	if (!f->crosses)
		assert_int_equal(f->result.how, PROMOTE_RENAMED);
	else
		assert_true(
			f->result.how == PROMOTE_COPIED || f->result.how == PROMOTE_REFLINKED);
}

static inline void assert_copied(const struct fixture *f)
{
	assert_true(f->result.how == PROMOTE_COPIED || f->result.how == PROMOTE_REFLINKED);
}

static inline void pause_shortly(void)
{
	const struct timespec wait = { .tv_nsec = 100000 };

	(void)nanosleep(&wait, NULL);
}
