/*
 * facts.c - the caller, the kernel, the workspace and the scratch base; see facts.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/facts/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/session_name.h"
#include "base/fd.h"
#include "box/sys.h"
#include "host/facts/home.h"
#include "host/facts/identity.h"
#include "host/facts/resolve.h"
#include "host/git/gittop.h"
#include "plan/path.h"

const char *facts_env(const char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, n) && (*environment)[n] == '=')
			return *environment + n + 1;
	return NULL;
}

const char *facts_cwd(struct arena *a)
{
	size_t room;
	char *cwd = arena_rest(a, &room);

	if (room < PATH_MAX || !getcwd(cwd, PATH_MAX))
		return NULL;
	size_t size = strlen(cwd) + 1;
	bool is_path = cwd[0] == '/';

	(void)arena_keep(a, is_path ? size : 0, size);
	return is_path ? cwd : NULL;
}

int facts_landlock(void)
{
	long abi =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? -errno : (int)abi;
}

static int make_name(struct facts *f, struct arena *a)
{
	char id[SESSION_ID_LENGTH + 1];
	int r = session_make_id(id);

	if (r < 0)
		return r;
	f->session_name = arena_format(a, SESSION_NAME_PREFIX "%s", id);
	return f->session_name ? 0 : -ENOMEM;
}

static int workspace_refused(const char *path, struct error *e)
{
	int r = error_set(e, ERROR_WORKSPACE, "facts", 0, path,
		"this directory is not a project and cannot be the workspace");

	error_hint(e, "name the project's own directory with --workspace");
	return r;
}

/* A tool that may write in one of these can take over the machine or the user's account. */
static bool is_system_directory(const char *path)
{
	static const char *const whole[] = { "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32",
		"/lib64", "/proc", "/run", "/sbin", "/sys", "/usr/bin", "/usr/include",
		"/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/sbin",
		"/usr/share" };
	static const char *const exact[] = { "/", "/home", "/media", "/mnt", "/opt", "/root",
		"/srv", "/tmp", "/usr", "/usr/local", "/usr/src", "/var", "/var/tmp",
		"/var/lib" };

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (path_below(whole[i], path))
			return true;
	for (size_t i = 0; i < sizeof(exact) / sizeof(exact[0]); i++)
		if (!strcmp(exact[i], path))
			return true;
	return false;
}

static bool is_refused(const struct facts *f, const char *path)
{
	return is_system_directory(path) || (f->home && path_below(path, f->home));
}

static int fail_work_tree(int r, const char *on, struct error *e)
{
	r = error_set(e, ERROR_WORKSPACE, "facts", r == -EPERM ? 0 : -r, on,
		r == -EPERM ? "the git work tree belongs to somebody else"
			    : "cannot look for the git work tree");
	error_hint(e, "name the directory with --workspace");
	return r;
}

int facts_work_tree(const struct facts *f, struct arena *a, const char **ret, struct error *e)
{
	const char *top = NULL;
	int r = f->cwd ? gittop_find(a, f->cwd, f->uid, &top) : 0;

	*ret = f->cwd;
	/* The home may be a repository. A caller in one of its directories does not mean all of it. */
	if (r == 0 || (top && is_refused(f, top)))
		return 0;
	if (r < 0)
		return fail_work_tree(r, top ? top : f->cwd, e);
	*ret = top;
	return 0;
}

/* The setting is a path or the word for a work tree. On the command line the word is refused where a directory has that name. */
static int choose_workspace(const struct facts *f, struct arena *a, const struct policy *policy,
	const char **ret, struct error *e)
{
	const struct text_value *v = &policy->workspace;
	struct stat st;

	*ret = v->value ? v->value : f->cwd;
	if (!v->value || strcmp(v->value, WORKSPACE_GIT) != 0)
		return 0;
	if (v->source.layer == LAYER_COMMAND && stat(WORKSPACE_GIT, &st) == 0 &&
		S_ISDIR(st.st_mode)) {
		int r = error_set(e, ERROR_WORKSPACE, "facts", 0, WORKSPACE_GIT,
			"the workspace is a word here, and there is a directory of that name");
		error_hint(e, "write ./git for the directory, or name the work tree's path");
		return r;
	}
	return facts_work_tree(f, a, ret, e);
}

static int find_workspace(
	struct facts *f, struct resolver *res, const struct policy *policy, struct error *e)
{
	const char *requested;
	struct resolved found;
	int r = choose_workspace(f, res->arena, policy, &requested, e);

	if (r < 0)
		return r;

	if (!requested) {
		r = error_set(e, ERROR_WORKSPACE, "facts", ERROR_OWN(ENOENT), NULL,
			"the current directory no longer exists, and no workspace is named");
		error_hint(
			e, "change to a directory that exists, or name one with --workspace");
		return r;
	}
	r = resolve_path(res, requested, 0, &found);
	if (r < 0)
		return error_set(e, ERROR_WORKSPACE, "facts", -r, requested,
			"cannot look at the workspace");
	if (!found.exists)
		return error_set(e, ERROR_WORKSPACE, "facts", ERROR_OWN(ENOENT), requested,
			"there is no such workspace");
	if (!S_ISDIR(found.st.st_mode))
		return error_set(e, ERROR_WORKSPACE, "facts", ERROR_OWN(ENOTDIR), requested,
			"the workspace is not a directory");
	if (is_refused(f, found.path))
		return workspace_refused(found.path, e);
	if (policy->workspace_mode == WORKSPACE_DIRECT &&
		faccessat(AT_FDCWD, found.path, W_OK | X_OK, AT_EACCESS) < 0) {
		r = error_set(e, ERROR_WORKSPACE, "facts", errno, found.path,
			"the workspace cannot be written");
		error_hint(e, "use --workspace-mode ro, or overlay to keep the changes apart");
		return r;
	}
	f->workspace = found.path;
	f->workspace_dev = found.st.st_dev;
	f->workspace_ino = found.st.st_ino;
	f->workspace_uid = found.st.st_uid;
	f->workspace_gid = found.st.st_gid;
	f->workspace_perm = found.st.st_mode & 0777;
	return 0;
}

static int scratch_error(const char *path, int errnum, const char *what, struct error *e)
{
	int r = error_set(e, ERROR_SCRATCH, "facts", errnum, path, "%s", what);

	error_hint(e, "name a directory of your own with --scratch-base");
	return r;
}

static bool is_kernels(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 &&
		(fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC);
}

/* The base must not let anyone else rename or replace what is made in it. */
static int check_scratch_base(
	const struct facts *f, const struct resolved *found, struct error *e)
{
	mode_t mode = found->st.st_mode;
	bool sticky = (mode & S_ISVTX) != 0;

	if (!S_ISDIR(mode))
		return scratch_error(found->path, ERROR_OWN(ENOTDIR),
			"the scratch base is not a directory", e);
	if (found->st.st_uid != f->uid && found->st.st_uid != 0 && !sticky)
		return scratch_error(found->path, 0,
			"the scratch base belongs to somebody else and is not sticky", e);
	if ((mode & S_IWOTH) && !sticky)
		return scratch_error(found->path, 0,
			"everybody can rename what is made in the scratch base: it is not sticky",
			e);
	if (!strcmp(found->path, "/") || (f->home && !strcmp(found->path, f->home)))
		return scratch_error(found->path, 0,
			"as a scratch base this directory would be hidden from the tools, with all else in it",
			e);
	if (is_kernels(found->path))
		return scratch_error(found->path, 0,
			"the scratch base is on a file system of the kernel, where no directory can be made",
			e);
	if (faccessat(AT_FDCWD, found->path, W_OK | X_OK, AT_EACCESS) < 0)
		return scratch_error(
			found->path, errno, "the scratch base cannot be written", e);
	return 0;
}

static int find_scratch_base(
	struct facts *f, struct resolver *res, const struct policy *policy, struct error *e)
{
	const char *requested = policy->scratch_base.value;
	const char *tmpdir = requested ? NULL : facts_env(f->environ, "TMPDIR");
	struct resolved found;

	if (tmpdir && tmpdir[0] == '/')
		requested = tmpdir;
	if (!requested)
		requested = "/tmp";
	int r = resolve_path(res, requested, 0, &found);
	if (r < 0)
		return error_set(e, ERROR_SCRATCH, "facts", -r, requested,
			"cannot look at the scratch base");
	if (!found.exists) {
		if (requested == tmpdir)
			error_hint(e,
				"TMPDIR names it; make it, or name another with --scratch-base");
		return scratch_error(
			requested, ERROR_OWN(ENOENT), "there is no such scratch base", e);
	}
	r = check_scratch_base(f, &found, e);
	if (r < 0)
		return r;
	/* The tools could reach, and break, what other sessions have in it. */
	if (!strcmp(found.path, f->workspace))
		return scratch_error(
			found.path, 0, "the scratch base is the workspace itself", e);
	f->scratch_base = found.path;
	f->session_dir = arena_join(res->arena, f->scratch_base, '/', f->session_name);
	if (f->session_dir)
		f->scratch_dir = arena_join(res->arena, f->session_dir, '/', "scratch");
	return f->scratch_dir ? 0 : -ENOMEM;
}

/*
 * Find $XDG_RUNTIME_DIR, which a session hides. If it surrounds the workspace or the home, they
 * would be hidden with it: then only `carrel` in it counts, where live sessions have their sockets.
 */
static int find_runtime_dir(struct facts *f, struct resolver *res)
{
	static const char *const never_ours[] = { "/run", "/tmp", "/var/tmp" };
	const char *requested = facts_env(f->environ, "XDG_RUNTIME_DIR");
	struct resolved found;

	if (!requested || requested[0] != '/')
		return 0;
	int r = resolve_path(res, requested, 0, &found);
	if (r >= 0 && found.exists &&
		(path_below(found.path, f->workspace) ||
			(f->home && path_below(found.path, f->home)))) {
		requested = arena_join(res->arena, found.path, '/', "carrel");
		r = requested ? resolve_path(res, requested, 0, &found) : -ENOMEM;
	}
	if (r < 0 && error_is_own(-r))
		return r;
	if (r < 0 || !found.exists || !S_ISDIR(found.st.st_mode))
		return 0;
	for (size_t i = 0; i < sizeof(never_ours) / sizeof(never_ours[0]); i++)
		if (path_below(never_ours[i], found.path))
			return 0;
	f->runtime_dir = found.path;
	return 0;
}

/* The session covers this path: if it does not exist, there is nothing to cover. */
static int find_state_dir(
	struct facts *f, struct resolver *res, const char *path, struct error *e)
{
	struct resolved found;

	if (!path)
		return 0;
	const char *copy = arena_copy(res->arena, path, strlen(path));
	int r = copy ? resolve_path(res, copy, 0, &found) : -ENOMEM;
	if (r >= 0 && !found.exists)
		r = -ENOENT;
	if (r < 0)
		return r == -ENOMEM ? r
				    : error_set(e, ERROR_STATE, "facts", -r, path,
					      "cannot look at the state directory");
	/* Another session, with another state directory, could write this one. */
	if (path_below(f->workspace, found.path)) {
		r = error_set(e, ERROR_STATE, "facts", 0, path,
			"the state directory lies in the workspace");
		error_hint(e, "name a directory of your own with XDG_STATE_HOME");
		return r;
	}
	f->state_dir = found.path;
	return 0;
}

static int find_home_and_cwd(struct facts *f, struct resolver *res, struct error *e)
{
	struct resolved found;
	const char *home;
	int r = home_find(&home, res->arena, f->environ, e);

	if (r < 0)
		return r;
	r = home ? resolve_path(res, home, 0, &found) : -ENOENT;
	if (r < 0 && error_is_own(-r))
		return r;
	if (r >= 0 && found.exists)
		f->home = found.path;
	f->cwd = facts_cwd(res->arena);
	return 0;
}

/* A kernel without it, and a container that refuses it, are no failures. */
static int find_landlock(struct facts *f)
{
	int abi = facts_landlock();

	f->landlock_abi = abi > 0 ? abi : 0;
	return abi >= 0 || abi == -ENOSYS || abi == -EOPNOTSUPP || abi == -EPERM ? 0 : abi;
}

static void take_identity(struct facts *f, const struct identity *id)
{
	f->uid = id->uid;
	f->gid = id->gid;
	f->privileged = id->privileged;
	f->unprivileged_why = id->unprivileged_why;
	f->kernel_uid = id->kernel_uid;
	f->kernel_gid = id->kernel_gid;
}

/* @identity: NULL where it is to be found here. */
static int find_places(struct facts *f, struct resolver *res, const struct policy *policy,
	const struct identity *identity, const char *state_dir, struct error *e)
{
	struct identity chosen;
	int r = 0;

	if (!identity) {
		r = identity_choose(&chosen, e);
		identity = &chosen;
	}
	if (r < 0)
		return r;
	take_identity(f, identity);
	r = find_workspace(f, res, policy, e);
	if (r < 0)
		return r;
	r = find_scratch_base(f, res, policy, e);
	if (r < 0)
		return r;
	r = find_runtime_dir(f, res);
	return r < 0 ? r : find_state_dir(f, res, state_dir, e);
}

int facts_caller(struct facts *ret, struct arena *a, const struct policy *policy,
	const struct identity *identity, const char *state_dir, const char *const *environment,
	struct error *e)
{
	struct facts f = { .environ = environment };
	struct resolver res = { .arena = a, .local = policy->local };

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &f.begun); /* as files are stamped */
	int r = find_landlock(&f);
	if (r >= 0)
		r = make_name(&f, a);
	if (r >= 0)
		r = find_home_and_cwd(&f, &res, e);
	if (r < 0) {
		resolve_done(&res);
		return e && e->code ? r
				    : error_set(e, ERROR_INTERNAL, "facts", -r, NULL,
					      "cannot start a session");
	}
	r = find_places(&f, &res, policy, identity, state_dir, e);
	resolve_done(&res);
	if (r < 0)
		return e && e->code ? r : error_no_memory(e, "facts");
	f.links = res.links;
	f.link_count = res.link_count;
	*ret = f;
	return 0;
}

static const char *xdg(struct arena *a, const char *const *environment, const char *name,
	const char *home, const char *below)
{
	const char *value = facts_env(environment, name);

	if (value && value[0] == '/')
		return value;
	return home && below ? arena_join(a, home, '/', below) : NULL;
}

int facts_names(struct policy_names *ret, struct arena *a, const struct facts *facts,
	const char *const *environment, struct error *e)
{
	const char *home, *account = NULL;
	int r = home_find(&home, a, environment, e);

	if (r >= 0 && facts)
		r = home_of_account(&account, a, home, e);
	if (r < 0)
		return r;
	*ret = (struct policy_names){
		.home = home,
		.account_home = account,
		.workspace = facts ? facts->workspace : NULL,
		.scratch = facts ? facts->scratch_dir : NULL,
		.xdg_config_home = xdg(a, environment, "XDG_CONFIG_HOME", home, ".config"),
		.xdg_cache_home = xdg(a, environment, "XDG_CACHE_HOME", home, ".cache"),
		.xdg_data_home = xdg(a, environment, "XDG_DATA_HOME", home, ".local/share"),
		.xdg_state_home = xdg(a, environment, "XDG_STATE_HOME", home, ".local/state"),
		.xdg_runtime_dir = xdg(a, environment, "XDG_RUNTIME_DIR", NULL, NULL),
		.ssh_auth_sock = xdg(a, environment, "SSH_AUTH_SOCK", NULL, NULL),
		.xauthority = xdg(a, environment, "XAUTHORITY", NULL, NULL),
	};
	if (ret->xdg_cache_home)
		ret->caches = arena_join(a, ret->xdg_cache_home, '/', "carrel/caches");
	return 0;
}
