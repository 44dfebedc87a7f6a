/*
 * pad_store.h - the pad of a session: one file for each section, beside the scratch.
 *
 * Runs in: carrel-agent, outside. Nothing inside can reach it: `pad/` lies in the session directory, of which tools
 * see only `scratch/` and `tool-results/`. It goes with the session.
 *
 * Writers exclude each other with flock(2) on the directory. The kernel drops the lock of a killed writer. If a
 * writer was stopped, every function here gives up after a while and returns -EWOULDBLOCK with nothing changed.
 * A section is replaced by rename(2), so that a reader finds the old text or the new, also after a kill.
 * There is no fsync(2): after a power cut there is no session that the text could belong to.
 */
#pragma once

#include <stddef.h>

#include "agent/buffer.h"
#include "base/error.h"

#define PAD_SECTION_MAX ((size_t)1 << 20) /* bytes of a section */
#define PAD_PATIENCE_MS 3000              /* wait so long for a writer that does not finish */

enum pad_section {
	PAD_GOAL,
	PAD_FINDINGS,
	PAD_ARTIFACTS,
	PAD_ERRORS,
	PAD_MAIN,
	PAD_SECTIONS, /* how many; in a request: all of them */
};

/* pad_section_name - "goal", "findings", "artifacts", "errors" or "main". */
const char *pad_section_name(enum pad_section section);

/* pad_section_find - the index of the section @name; PAD_SECTIONS: there is no such section. */
enum pad_section pad_section_find(const char *name);

/*
 * pad_open - the pad in the session directory @session; makes it if it is missing.
 * Returns a descriptor, the caller's, or -errno.
 */
MUST_CHECK int pad_open(int session);

/*
 * pad_write - replace a section. @ret_bytes: its size afterwards, or with -EFBIG the size that was too large.
 * Returns 0, -EFBIG (nothing was changed) or -errno.
 */
MUST_CHECK int pad_write(
	int pad, enum pad_section section, const char *text, size_t size, size_t *ret_bytes);

/* pad_append - the same, after the text that is there; adds a newline between them if there is none. */
MUST_CHECK int pad_append(
	int pad, enum pad_section section, const char *text, size_t size, size_t *ret_bytes);

/*
 * pad_read - sections as they are at one moment.
 * @section: one, or PAD_SECTIONS for all. @ret: PAD_SECTIONS empty buffers, the caller's; one whose
 * section was never written stays without data. Returns 0, -EFBIG (not ours) or -errno.
 */
MUST_CHECK int pad_read(int pad, enum pad_section section, struct buffer ret[PAD_SECTIONS]);

/* pad_clear - erase one section, or all of them. 0 or -errno. */
MUST_CHECK int pad_clear(int pad, enum pad_section section);
