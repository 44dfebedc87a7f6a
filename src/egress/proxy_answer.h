/*
 * proxy_answer.h - what a client of the proxy is told that has not what it wants.
 *
 * Runs in: carrel-egress. PURE.
 */
#pragma once

#include "egress/proxy.h"

enum { PROXY_ANSWER_MAX = 1024 };

/* proxy_answer_build - HTTP with one line of text, or a reply of SOCKS. Its size. */
size_t proxy_answer_build(const struct proxy_refusal *refusal, uint8_t ret[PROXY_ANSWER_MAX]);
