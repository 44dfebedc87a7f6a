/*
 * proxy_answer.h - the proxy's answers to clients that it refuses.
 *
 * Runs in: carrel-egress. PURE.
 */
#pragma once

#include "egress/proxy.h"

enum { PROXY_ANSWER_MAX = 1024 };

/* proxy_answer_build - HTTP with one line of text, or a reply of SOCKS. Its size. */
size_t proxy_answer_build(const struct proxy_refusal *refusal, uint8_t ret[PROXY_ANSWER_MAX]);
