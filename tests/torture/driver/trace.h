/*
 * trace.h - run a program and all its descendants under ptrace(2), and make one system call fail, or
 * one process die, at an exact place.
 *
 * Runs in: the torture driver. May not: judge.
 *
 * A place is a process and the number of a call in it. A process is named by how it came to be:
 * "0" is the launcher, "0.1" its first child, "0.1.2" that one's second; this does not depend on
 * pids or on who is faster.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TRACE_PATH = 16, TRACE_PROCESSES = 48, TRACE_CALLS = 2048, TRACE_VIEW = 128 * 1024 };

enum trace_kind {
	KIND_LAUNCHER, /* of a live session: the driver's own process that starts the clients */
	KIND_HELPER,
	KIND_READER, /* a helper that confines itself, to look at what tools made */
	KIND_INIT,   /* also the init of a view: the session ends with it */
	KIND_PAYLOAD,
	KIND_CLIENT, /* these are in live sessions only */
	KIND_SUPERVISOR,
	KIND_MONITOR,
	KIND_COUNT
};

struct trace_point {
	char path[TRACE_PATH]; /* which process; empty: nothing is injected */
	unsigned index;        /* which of its calls, from 0 */
	int error;             /* errno to fail with; 0: SIGKILL instead of the call */
	uint64_t
		site; /* the instruction that makes the call (site.h), 0: each call is stopped at and counted */
	unsigned before; /* how many calls of the process it has made before */
};

struct trace_process {
	pid_t pid;
	char path[TRACE_PATH];
	enum trace_kind kind;
	unsigned
		count; /* calls begun before it became another program; with a point, of its process alone */
	uint16_t calls
		[TRACE_CALLS]; /* their numbers; where the point has a site, that of the point alone */
	uint64_t sites[TRACE_CALLS]; /* the instructions that made them */
	unsigned met;                /* how often it has stood at the point's site */
	unsigned children;
	bool alive, held, executed;
	bool begun; /* the launcher: it is the launcher now, and no longer the driver's child */
	bool beyond;  /* a descendant of the command: not ours to judge */
	bool failing; /* in the call that is to fail */
	bool armed,
		due; /* it stops at the point's site; the call that comes next is the point */
	unsigned command; /* the how many-th command it became, from 1; 0: none */
	int status;       /* wait status, where not alive */
};

struct trace_result {
	struct trace_process processes[TRACE_PROCESSES];
	unsigned process_count;
	bool reached;              /* the point was met */
	uint64_t argument;         /* second argument of the call that was hit */
	bool after_command;        /* by then a command that this process started had ended */
	bool hung;                 /* not over in time: all were killed */
	unsigned survivors;        /* processes alive some time after the launcher had ended */
	char survivor[TRACE_PATH]; /* one of them */
	unsigned commands;         /* how many were started */
	bool command_started;      /* a process other than the launcher executed a program */
	bool command_ended;
	int command_status;  /* wait status */
	int launcher_status; /* wait status */
	char *view;     /* TRACE_VIEW bytes: the walls around each command, by view_take() */
	bool view_torn; /* it was killed while they were looked at, before its first step */
	bool overflow;  /* more processes or calls than there is room for */
};

struct trace_setup {
	const char *const *argv, *const *envp;
	const char *cwd;
	bool live; /* what is run starts the clients of a live session */
	int stdio[3];
	int time_limit_ms; /* the launcher must be over */
	int grace_ms;      /* and then everything else */
};

/*
 * trace_run - one run with one injection.
 * @children: a signalfd for SIGCHLD, which is blocked. @ret->view: the caller's memory.
 * When it returns no process of the run is left. 0 or -errno (the machine refuses to trace).
 */
int trace_run(const struct trace_setup *setup, const struct trace_point *point, int children,
	struct trace_result *ret);

/* trace_call_name - the name of a system call, or its number in @ret_text. */
const char *trace_call_name(unsigned number, char ret_text[16]);

/* trace_result_reset - empty it, but keep the memory for the view. */
void trace_result_reset(struct trace_result *result);
