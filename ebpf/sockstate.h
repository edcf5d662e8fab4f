/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Life spans of connections; the socket's state is forgotten when it closes. */
#ifndef GRAYFAIL_SOCKSTATE_H
#define GRAYFAIL_SOCKSTATE_H

#include "exchange.h"

static __always_inline void emit_connection(const struct socket_state *s, __u64 now)
{
	struct connection_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		count_lost(LOST_RING);
		return;
	}
	e->kind = EVENT_CONNECTION;
	e->established = s->established;
	e->start = s->opened;
	e->end = now;
	e->flow = s->flow;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* connect() of the owner: the addresses are set, the local port is chosen later. */
static __always_inline void on_connect(const struct sock *sk, __u64 now)
{
	struct socket_state *s;

	if (!port_watched(bpf_ntohs(sk->__sk_common.skc_dport)) || !namespace_watched(sk))
		return;
	s = track_socket(sk, make_key(sk), ROLE_CLIENT);
	if (!s)
		return;
	s->opened = now;
	fill_owner(&s->flow);
}

static __always_inline void on_established(const struct sock *sk, int was, __u64 now)
{
	struct socket_state *s = find_socket(sk);
	__u32 role = ROLE_SERVER;

	if (!s) {
		if (was != TCP_SYN_RECV)
			return;
		if (!port_watched(sk->__sk_common.skc_num)) {
			if (!port_watched(bpf_ntohs(sk->__sk_common.skc_dport)))
				return;
			role = ROLE_IGNORED;
		}
		if (!namespace_watched(sk))
			return;
		s = track_socket(sk, make_key(sk), role);
		if (!s)
			return;
		s->opened = now;
	} else {
		/* The route may have picked the local address since connect(). */
		fill_flow(&s->flow, sk, s->flow.role);
	}
	s->established = 1;
}

/*
 * Nothing can be sent any more, so no next send will end the exchange. What
 * was never answered lasted until now. Reply bytes after our FIN do not pass
 * tcp_probe: a client that half-closes before it reads is not clocked.
 */
static __always_inline void end_exchange(struct socket_state *s, const struct sock *sk, __u64 now)
{
	struct tcp_sock *tp;

	if (!s->exchange.send)
		return;
	tp = bpf_skc_to_tcp_sock((void *)sk);
	if (!tp)
		return;
	if (!s->exchange.last)
		s->exchange.last = now;
	count_request(s, tp->write_seq);
	observe(s, tp);
	emit_exchange(s);
	s->exchange.send = 0;
}

/* The state is stored before the FIN is queued (tcp_close_state(), tcp_shutdown()). */
static __always_inline void on_fin(const struct sock *sk, __u64 now)
{
	struct socket_state *s = find_socket(sk);

	if (s)
		end_exchange(s, sk, now);
}

static __always_inline void on_close(const struct sock *sk, __u64 now)
{
	__u64 key = known_key(sk);
	struct socket_state *s = bpf_map_lookup_elem(&sockets, &key);

	if (!s)
		return;
	if (!s->flow.local_port)
		fill_flow(&s->flow, sk, s->flow.role);
	end_exchange(s, sk, now);
	if (s->opened && s->flow.role != ROLE_IGNORED)
		emit_connection(s, now);
	bpf_map_delete_elem(&sockets, &key);
}

/* inet_sk_state_store(): also sockets of other protocols. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(set_state, const struct sock *sk, int was, int is)
{
	__u64 now;

	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	now = bpf_ktime_get_ns();
	switch (is) {
	case TCP_SYN_SENT:
		on_connect(sk, now);
		break;
	case TCP_ESTABLISHED:
		on_established(sk, was, now);
		break;
	case TCP_FIN_WAIT1:
	case TCP_LAST_ACK:
		on_fin(sk, now);
		break;
	case TCP_CLOSE:
		on_close(sk, now);
		break;
	}
	return 0;
}

#endif
