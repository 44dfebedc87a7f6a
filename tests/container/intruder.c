/*
 * intruder.c - tries from inside what each wall is there to refuse, and the others in the container that
 * it tries it on. Static: it is the only program of the smallest image.
 *
 * Runs in: a container of the tests.
 *   intruder outside COMMAND...   leave a neighbour behind (a listener, shared memory), run COMMAND
 *   intruder try [PLACE]          one line for each attempt: NAME done|refused
 *   intruder orphan               leave a process that ends by itself; print its pid as init sees it
 *   intruder gone PID             status 0 where there is no such process, not even a zombie
 *   intruder zombie PID           status 0 where it is one
 *   intruder wait FILE            make FILE, wait for TERM, end with 7; children are never reaped
 *   intruder deaf FILE            make FILE, ignore TERM, and have a child that does so, too
 *   intruder alone COMMAND...     run COMMAND as a child; then print how many others are there
 *   intruder refuse COMMAND...    run COMMAND where a filter refuses namespaces and mounts, as docker's does
 *   intruder exit N | intruder kill-parent | intruder bomb
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEIGHBOUR "neighbour"
enum { PORT = 7717, KEY = 0x63617272 };

static struct sockaddr_in tcp_address(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static socklen_t abstract_address(struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret->sun_path + 1, NEIGHBOUR, strlen(NEIGHBOUR));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(NEIGHBOUR));
}

static _Noreturn void wait_for_ever(void)
{
	for (;;)
		(void)pause();
}

static int make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return -1;
	(void)!write(fd, "here\n", 5);
	return close(fd);
}

static const struct sockaddr_un path_address = { .sun_family = AF_UNIX,
	.sun_path = "/tmp/" NEIGHBOUR };

/* --- the others ------------------------------------------------------------------------------- */

static void listen_on(int family, const struct sockaddr *address, socklen_t length)
{
	int one = 1;
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, address, length) < 0 || listen(fd, 8) < 0)
		perror("intruder: listen");
}

static _Noreturn void be_neighbour(int ready)
{
	const struct sockaddr_in tcp = tcp_address();
	struct sockaddr_un un;
	socklen_t length = abstract_address(&un);

	(void)prctl(PR_SET_NAME, NEIGHBOUR);
	listen_on(AF_INET, (const struct sockaddr *)&tcp, sizeof(tcp));
	listen_on(AF_UNIX, (const struct sockaddr *)&un, length);
	listen_on(AF_UNIX, (const struct sockaddr *)&path_address, sizeof(path_address));
	(void)chmod(path_address.sun_path, 0777);
	if (make_file("/tmp/own") < 0)
		perror("intruder: /tmp/own");
	if (shmget(KEY, 4096, IPC_CREAT | 0666) < 0)
		perror("intruder: shmget");
	(void)close(ready);
	wait_for_ever();
}

static int run_outside(char **argv)
{
	int ready[2];
	char byte;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		(void)close(ready[0]);
		be_neighbour(ready[1]);
	}
	(void)close(ready[1]);
	(void)!read(ready[0], &byte, 1); /* end of file: it stands */
	(void)execvp(argv[0], argv);
	perror(argv[0]);
	return 127;
}

/* --- the attempts: 0 where it was done -------------------------------------------------------- */

/* Where the tree of the image is: "" in a container. */
static const char *at(const char *place, const char *path)
{
	static char whole[512];

	(void)snprintf(whole, sizeof(whole), "%s%s", place, path);
	return whole;
}

static int try_workspace(const char *place)
{
	return make_file(at(place, "/srv/ws/from-inside"));
}

static int try_scratch(const char *place)
{
	(void)place;
	char path[512];
	const char *dir = getenv("TMPDIR");

	(void)snprintf(path, sizeof(path), "%s/from-inside", dir ? dir : "/tmp");
	return make_file(path);
}

static int try_write_outside(const char *place)
{
	return make_file(at(place, "/home/u/open/from-inside"));
}

static int try_read(const char *path)
{
	char text[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return n > 0 ? 0 : -1;
}

static int try_read_hidden(const char *place)
{
	return try_read(at(place, "/home/u/.ssh/id"));
}

static int try_read_orchestrator(const char *place)
{
	return try_read(at(place, "/secrets/token"));
}

static int try_network(const char *place)
{
	(void)place;
	const struct sockaddr_in address = tcp_address();
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&address, sizeof(address));
}

static int try_abstract(const char *place)
{
	(void)place;
	struct sockaddr_un address;
	socklen_t length = abstract_address(&address);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&address, length);
}

static int try_unix_socket(const char *place)
{
	(void)place;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return fd < 0
		? -1
		: connect(fd, (const struct sockaddr *)&path_address, sizeof(path_address));
}

/* A file of the same user, that is neither in the workspace nor in the scratch. */
static int try_change_mode(const char *place)
{
	(void)place;
	return chmod("/tmp/own", 0600);
}

static int try_shared_memory(const char *place)
{
	(void)place;
	return shmget(KEY, 4096, 0) < 0 ? -1 : 0;
}

/* A descriptor of the neighbour's directory in /proc, or -1. */
static int find_neighbour(void)
{
	DIR *proc = opendir("/proc");
	int found = -1;

	for (struct dirent *d; proc && found < 0 && (d = readdir(proc));) {
		char path[300], name[32] = "";

		(void)snprintf(path, sizeof(path), "/proc/%s/comm", d->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		(void)!read(fd, name, sizeof(name) - 1);
		(void)close(fd);
		(void)snprintf(path, sizeof(path), "/proc/%s", d->d_name);
		if (!strcmp(name, NEIGHBOUR "\n"))
			found = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (proc)
		(void)closedir(proc);
	return found;
}

static int try_see_process(const char *place)
{
	(void)place;
	return find_neighbour() < 0 ? -1 : 0;
}

static int try_signal_process(const char *place)
{
	(void)place;
	int fd = find_neighbour();

	/* A directory of /proc is as good as a pidfd, and no number is mistaken for another's. */
	return fd < 0 ? -1 : (int)syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0);
}

static int try_read_process(const char *place)
{
	(void)place;
	char text[64];
	int dir = find_neighbour();
	int fd = dir < 0 ? -1 : openat(dir, "environ", O_RDONLY | O_CLOEXEC);

	return fd < 0 || read(fd, text, sizeof(text)) <= 0 ? -1 : 0;
}

static int try_secret(const char *place)
{
	(void)place;
	return getenv("SECRET") ? 0 : -1;
}

static int try_capability(const char *place)
{
	(void)place;
	return chroot("/");
}

static int try_syscall(const char *place)
{
	(void)place;
	/* The events of the machine's devices: NETLINK_KOBJECT_UEVENT. */
	return socket(AF_NETLINK, SOCK_RAW, 15) < 0 ? -1 : 0;
}

static int try_namespace(const char *place)
{
	(void)place;
	return (int)syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */);
}

static int try_all(const char *place)
{
	static const struct {
		const char *name;
		int (*try)(const char *place);
	} attempts[] = {
		{ "workspace", try_workspace },
		{ "scratch", try_scratch },
		{ "write-outside", try_write_outside },
		{ "read-hidden", try_read_hidden },
		{ "read-secrets", try_read_orchestrator },
		{ "network", try_network },
		{ "abstract-socket", try_abstract },
		{ "unix-socket", try_unix_socket },
		{ "change-mode", try_change_mode },
		{ "shared-memory", try_shared_memory },
		{ "see-process", try_see_process },
		{ "signal-process", try_signal_process },
		{ "read-process", try_read_process },
		{ "environment", try_secret },
		{ "capability", try_capability },
		{ "system-call", try_syscall },
		{ "namespace", try_namespace },
	};

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		(void)printf("%s %s\n", attempts[i].name,
			attempts[i].try(place) == 0 ? "done" : "refused");
	return 0;
}

/* --- processes -------------------------------------------------------------------------------- */

static int leave_orphan(void)
{
	int ends[2];

	if (pipe(ends) < 0)
		return 1;
	pid_t child = fork();
	if (child == 0) {
		pid_t orphan = fork();

		if (orphan == 0) {
			char byte;

			/* Ends when it is an orphan for sure: its parent, and we, have closed the pipe. */
			(void)close(ends[1]);
			(void)!read(ends[0], &byte, 1);
			_exit(0);
		}
		(void)printf("%d\n", (int)orphan);
		(void)fflush(stdout);
		_exit(0);
	}
	(void)waitpid(child, NULL, 0);
	return 0;
}

static int is_gone(const char *pid)
{
	return kill((pid_t)strtol(pid, NULL, 10), 0) < 0 && errno == ESRCH ? 0 : 1;
}

static int is_zombie(const char *pid)
{
	char path[64], text[512] = "";

	(void)snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 1;
	(void)!read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	return strstr(text, ") Z ") ? 0 : 1;
}

static void on_term(int signal)
{
	(void)signal;
	_exit(7);
}

static int wait_for_term(const char *file)
{
	(void)signal(SIGTERM, on_term);
	if (make_file(file) < 0)
		return 1;
	wait_for_ever();
}

/* The child moves to a session of its own, as a daemon would. */
static int be_deaf(const char *file)
{
	(void)signal(SIGTERM, SIG_IGN);
	if (fork() == 0)
		(void)setsid();
	else if (make_file(file) < 0)
		return 1;
	wait_for_ever();
}

static int kill_parent(void)
{
	if (fork() == 0) {
		(void)setsid();
		wait_for_ever();
	}
	(void)kill(getppid(), SIGKILL);
	wait_for_ever();
}

/* Whoever is left in this pid namespace, besides us and what was there before. */
static int count_others(void)
{
	DIR *proc = opendir("/proc");
	int count = 0;

	for (struct dirent *d; proc && (d = readdir(proc));) {
		char path[300], text[256] = "";

		if (d->d_name[0] < '1' || d->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/comm", d->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		(void)!read(fd, text, sizeof(text) - 1);
		(void)close(fd);
		count +=
			strtol(d->d_name, NULL, 10) != getpid() && strcmp(text, NEIGHBOUR "\n");
	}
	if (proc)
		(void)closedir(proc);
	return count;
}

static int run_alone(char **argv)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	(void)waitpid(pid, &status, 0);
	(void)printf("left %d\n", count_others());
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* --- a machine that refuses ------------------------------------------------------------------- */

#define NUMBER(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static int run_refused(char **argv)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		NUMBER(unshare),
		NUMBER(setns),
		NUMBER(mount),
		NUMBER(umount2),
		NUMBER(pivot_root),
		NUMBER(open_tree),
		NUMBER(move_mount),
		NUMBER(fsopen),
		NUMBER(fsconfig),
		NUMBER(fsmount),
		NUMBER(mount_setattr),
		NUMBER(keyctl),
		NUMBER(add_key),
		NUMBER(request_key),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x7e020000, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]),
		.filter = (struct sock_filter *)code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return 1;
	(void)execvp(argv[0], argv);
	perror(argv[0]);
	return 127;
}

/*
 * RLIMIT_NPROC does not hold root. There is an end then, too: the machine's last pid is taken within a tenth
 * of a second otherwise, and whoever else wants one meanwhile, beside the test, fails.
 */
enum { BOMB_OF_ROOT = 2000 };

/*
 * Forks as fast as it can; what is forked does so, too, and again when one of them has ended. Bounded by the
 * limit that the test gives it, for a uid that no other test uses: processes are counted for each uid.
 */
static int bomb(void)
{
	unsigned *made = mmap(
		NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		return 1;
	if (fork() == 0) {
		(void)setsid();
		while (geteuid() != 0 ||
			__atomic_add_fetch(made, 1, __ATOMIC_RELAXED) < BOMB_OF_ROOT)
			(void)fork();
		wait_for_ever();
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "outside") && argc > 2)
		return run_outside(argv + 2);
	if (!strcmp(what, "alone") && argc > 2)
		return run_alone(argv + 2);
	if (!strcmp(what, "refuse") && argc > 2)
		return run_refused(argv + 2);
	if (!strcmp(what, "try"))
		return try_all(argc > 2 ? argv[2] : "");
	if (!strcmp(what, "orphan"))
		return leave_orphan();
	if (!strcmp(what, "gone") && argc > 2)
		return is_gone(argv[2]);
	if (!strcmp(what, "zombie") && argc > 2)
		return is_zombie(argv[2]);
	if (!strcmp(what, "wait") && argc > 2)
		return wait_for_term(argv[2]);
	if (!strcmp(what, "deaf") && argc > 2)
		return be_deaf(argv[2]);
	if (!strcmp(what, "exit") && argc > 2)
		return (int)strtol(argv[2], NULL, 10);
	if (!strcmp(what, "kill-parent"))
		return kill_parent();
	if (!strcmp(what, "bomb"))
		return bomb();
	(void)fprintf(stderr, "intruder: do what?\n");
	return 2;
}
