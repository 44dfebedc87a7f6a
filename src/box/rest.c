/*
 * rest.c - see rest.h.
 *
 * Runs in: init, monitors, the coverer and the supervisor. No heap, no stdio.
 */
#include "box/rest.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A function that gives memory back and then waits. It lies in one page, which it keeps, and calls nothing: a fault would bring
 * sixteen pages around it (fault_around_bytes).
 */
#define REST_FUNCTION __attribute__((noinline, aligned(512)))

/* A system call that needs no function of the libc. Returns what the kernel says, -errno included. */
static inline __attribute__((always_inline)) long call(long number, uintptr_t a, uintptr_t b,
	uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)
{
#if defined(__x86_64__)
	register uintptr_t r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register uintptr_t x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	register uintptr_t x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return (long)x0;
#else
	long result = syscall(number, a, b, c, d, e, f);

	return result < 0 ? -errno : result;
#endif
}

static inline __attribute__((always_inline)) void drop(uintptr_t start, uintptr_t end)
{
	/* This is not a wall, and nothing is lost where the kernel refuses it. */
	if (start < end)
		(void)call(SYS_madvise, start, end - start, MADV_DONTNEED, 0, 0, 0);
}

/* Give back the program's text, but for the page of @here, and the plan; they come again, from the page cache, when used. */
static inline __attribute__((always_inline)) void give_back(
	const struct box *box, const void *here)
{
	const uintptr_t page = box->code.page, kept = (uintptr_t)here & ~(page - 1);

	for (unsigned i = 0; i < box->code.count; i++) {
		uintptr_t start = (uintptr_t)box->code.start[i];
		uintptr_t end = start + box->code.size[i];

		if (kept >= start && kept < end) {
			drop(start, kept);
			start = kept + page;
		}
		drop(start, end);
	}
	drop((uintptr_t)box->arena, (uintptr_t)box->arena + box->arena_size);
}

static REST_FUNCTION int wait_at_rest(
	const struct box *box, struct pollfd *events, nfds_t count)
{
	give_back(box, (const void *)wait_at_rest);
#ifdef SYS_poll /* not everywhere */
	return (int)call(SYS_poll, (uintptr_t)events, count, (uintptr_t)-1, 0, 0, 0);
#else
	return (int)call(SYS_ppoll, (uintptr_t)events, count, 0, 0, 0, 0);
#endif
}

int rest_poll(const struct box *box, struct pollfd *events, nfds_t count)
{
	for (;;) {
		int n = poll(events, count, REST_AFTER_MS);

		n = n < 0 ? -errno : n == 0 ? wait_at_rest(box, events, count) : n;
		if (n != -EINTR)
			return n;
	}
}

REST_FUNCTION int rest_epoll(
	const struct box *box, int epoll, struct epoll_event *events, int count, int timeout_ms)
{
	give_back(box, (const void *)rest_epoll);
	return (int)call(SYS_epoll_pwait, (uintptr_t)epoll, (uintptr_t)events, (uintptr_t)count,
		(uintptr_t)timeout_ms, 0, 0);
}
