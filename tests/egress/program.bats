#!/usr/bin/env bats
# carrel-egress alone: drive.py plays the supervisor. It makes the sockets, a DNS server, the servers that names lead to
# and the clients, in network namespaces of its own.
# ctest: cost=20
load ../lib/common

setup() {
	common_setup
	need python3
	EGRESS=${CARREL%/bin/carrel}/libexec/carrel/carrel-egress
	[[ -x $EGRESS ]] || fail "there is no $EGRESS"
}

drive() {
	run /usr/bin/python3 -B "$CARREL_SOURCE/tests/egress/drive.py" "$EGRESS" "$1"
	((status != 77)) || skip 'no user namespaces for an ordinary process'
	assert_status 0
}

@test "a name has one address for the session; what no rule allows is none, and goes no further" {
	drive names
	drive names_six
}

@test "the host's files: hosts(5) with blanks before a line, a resolver with a link-local address" {
	drive hosts_and_resolvers
}

@test "the proxy of the host's network is asked for names, but for those of hosts(5)" {
	drive host_proxy
}

@test "queries over TCP: in pieces, several at once, too long, more than it holds" {
	drive dns_over_tcp
}

@test "messages that are no queries" {
	drive bad_messages
}

@test "upstream: a failure, an answer that is too long, forged ones, an alias of itself" {
	drive upstream
}

@test "a resolver that is not there" {
	drive no_resolver
}

@test "bytes both ways: all of them, half-closed, held back" {
	drive relay
}

@test "a port, an address that no rule allows is reset at once" {
	drive refused
}

@test "a server's reset is the client's" {
	drive reset_passes
}

@test "a name that leads to the host, its networks or the block is refused" {
	drive addresses
}

@test "unless an address rule allows that" {
	drive addresses_allowed
}

@test "an address that does not answer is not waited for" {
	drive happy_eyeballs
}

@test "so many connections, so many bytes" {
	drive limits
}

@test "500 connections at once, 2,000 one after the other" {
	drive many
}

@test "TLS: for the name alone" {
	need openssl
	drive tls
}

@test "TLS: a ClientHello in pieces and in several records" {
	drive tls_pieces
}

@test "TLS: tls-name no (the control of both)" {
	need openssl
	drive tls_name_no
}

@test "a supervisor that is gone or says what cannot be; rules that are none" {
	drive channel
}

@test "a rule that is added" {
	drive rules_added
}

@test "a rule that is taken back: what only it allowed ends, the policy's own stay" {
	drive rules_removed
}

@test "a published port: by the sockets that it was given, each used again" {
	drive published
}

@test "its own walls, and that it dies with what started it" {
	drive confined
}

@test "killed: connections end, names do not resolve" {
	drive killed
}

@test "the log" {
	drive log
}

@test "a supervisor that does not read: what it was not told is counted to the last" {
	drive supervisor_that_does_not_read
}

@test "a log that is full: what it did not take is counted, and a line that broke off is no part of the next" {
	drive log_that_is_full
}

@test "a log that nobody reads holds nothing up" {
	drive log_that_nobody_reads
}

@test "more names than it keeps" {
	drive many_names
}

@test "the proxy: requests over one connection to several servers, each decided about" {
	drive proxy_http
}

@test "the proxy: a request that can be read in two ways goes no further" {
	drive proxy_smuggling
}

@test "the proxy: CONNECT, by the same rules, with the same look at the ClientHello" {
	need openssl
	drive proxy_connect
}

@test "the proxy: SOCKS 5" {
	need openssl
	drive proxy_socks
}

@test "the proxy: slow clients, so many connections, so many bytes" {
	drive proxy_limits
}
