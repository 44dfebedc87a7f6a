/*
 * unix_table.h - the names of the unix sockets at which somebody waits for connections or datagrams.
 *
 * Runs in: the launcher and carrel-policy, outside. May not: believe a name. Anybody can have made one, and it may
 * lead to something else.
 */
#pragma once

#include "base/error.h"

/* Takes one: an absolute path, gone when it returns. 0 to go on. */
typedef int (*unix_table_fn)(void *context, const char *path);

/*
 * unix_table_read - call @take for each socket with a path that takes connections or datagrams, in
 * the caller's network namespace. The table is read piece by piece: other users of the machine can
 * make it long. Returns 0; -EFBIG: what is behind 64 MiB was not read; -ENOENT: this machine has
 * none; another -errno; or what @take returned.
 * See: proc(5), net/unix/af_unix.c unix_seq_show().
 */
MUST_CHECK int unix_table_read(unix_table_fn take, void *context);
