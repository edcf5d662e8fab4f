/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The exchange clock: last send -> last reply byte before the next send, on
 * the side that opened the connection. An exchange ends when the next one
 * begins (or the connection closes): only then is its last byte the last.
 */
#ifndef GRAYFAIL_EXCHANGE_H
#define GRAYFAIL_EXCHANGE_H

#include "sockets.h"

static __always_inline void emit_exchange(const struct socket_state *s)
{
	struct exchange_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		count_lost(LOST_RING);
		return;
	}
	e->kind = EVENT_EXCHANGE;
	e->unused = 0;
	e->flow = s->flow;
	e->exchange = s->exchange;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* Brings the exchange's share of the socket's counters up to date. */
static __always_inline void observe(struct socket_state *s, const struct tcp_sock *tp)
{
	s->exchange.srtt_us = tp->srtt_us >> 3;
	s->exchange.min_rtt_us = tp->rtt_min.s[0].v;
	s->exchange.out_of_order = tp->rcv_ooopack - s->base_out_of_order;
	s->exchange.retransmits = tp->total_retrans - s->base_retransmits;
	s->exchange.dsacks = tp->dsack_dups - s->base_dsacks;
}

static __always_inline void begin_exchange(struct socket_state *s, const struct tcp_sock *tp, __u64 now)
{
	__builtin_memset(&s->exchange, 0, sizeof(s->exchange));
	s->exchange.send = now;
	s->base_out_of_order = tp->rcv_ooopack;
	s->base_retransmits = tp->total_retrans;
	s->base_dsacks = tp->dsack_dups;
	observe(s, tp);
}

/* Counts the request up to seq. Sequence numbers wrap: compare by difference. */
static __always_inline void count_request(struct socket_state *s, __u32 seq)
{
	__s32 more = seq - s->write_seq;

	if (more <= 0)
		return;
	s->exchange.request += more;
	s->write_seq = seq;
}

/*
 * One send. sent: bytes already in write_seq (hooks that run after the send),
 * planned: bytes about to be added (hooks that run before it).
 */
static __always_inline int on_send(struct sock *sk, __u32 sent, __u64 planned)
{
	struct socket_state *s;
	struct tcp_sock *tp;
	__u32 seq, start;
	__u64 key, now;
	int seen;

	if (!port_watched(bpf_ntohs(sk->__sk_common.skc_dport)))
		return 0;
	/* A send on a socket that has closed fails: it must not be tracked anew. */
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED && sk->__sk_common.skc_state != TCP_CLOSE_WAIT)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	key = make_key(sk);
	s = bpf_map_lookup_elem(&sockets, &key);
	if (!s) {
		if (!namespace_watched(sk))
			return 0;
		s = track_socket(sk, key, ROLE_CLIENT);
		if (!s)
			return 0;
		s->established = 1;
	}
	if (s->flow.role != ROLE_CLIENT)
		return 0;

	now = bpf_ktime_get_ns();
	seq = tp->write_seq;
	start = seq - sent;
	if (!s->exchange.send)
		s->write_seq = start;
	/*
	 * After the send its ACK, even its reply, may have been here before
	 * this hook: on_receive() has then begun the exchange.
	 */
	seen = (__s32)(start - s->write_seq) < 0;
	if (!seen)
		count_request(s, start);
	if (!s->exchange.send) {
		begin_exchange(s, tp, now);
	} else if (s->exchange.last && !seen) {
		observe(s, tp);
		emit_exchange(s);
		begin_exchange(s, tp, now);
	}
	count_request(s, seq);
	s->planned = planned;
	if (!s->exchange.last) {
		s->exchange.send = now;
		s->exchange.acked = send_hook_after && tp->snd_una == seq ? now : 0;
	}
	refresh_owner(s);
	return 0;
}

/* 6.15 (0f08335ade71): once a chunk, before it is queued, socket locked. */
SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(send_locked, struct sock *sk, struct msghdr *msg)
{
	return on_send(sk, 0, msg->msg_iter.count);
}

/*
 * 6.3 (6e6eda44b939, net/socket.c sock_sendmsg_nosec()): after the send, for
 * sockets of every family, unlocked; ret is the bytes taken or an error.
 */
SEC("tp_btf/sock_send_length")
int BPF_PROG(send_length, struct sock *sk, int ret)
{
	if (ret <= 0 || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (sk->__sk_common.skc_family != AF_INET && sk->__sk_common.skc_family != AF_INET6)
		return 0;
	return on_send(sk, ret, 0);
}

/* Any kernel with BPF trampolines (5.5, arm64 6.0): once a call, before it. */
SEC("fentry/tcp_sendmsg")
int BPF_PROG(send_call, struct sock *sk, struct msghdr *msg, unsigned long size)
{
	return on_send(sk, 0, size);
}

/* tcp_rcv_established(): every segment of an established socket, before it is queued. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(receive, struct sock *sk, struct sk_buff *skb)
{
	struct socket_state *s;
	struct tcp_header th;
	struct tcp_sock *tp;
	__u32 seq, ack, next, end, header, len;
	__s32 more;
	__u64 now;

	if (!port_watched(bpf_ntohs(sk->__sk_common.skc_dport)))
		return 0;
	s = find_socket(sk);
	if (!s || s->flow.role != ROLE_CLIENT || !s->exchange.send)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || bpf_probe_read_kernel(&th, sizeof(th), skb->data))
		return 0;
	now = bpf_ktime_get_ns();
	seq = bpf_ntohl(th.seq);
	ack = bpf_ntohl(th.ack);

	if (send_hook_after && (__s32)(ack - s->write_seq) > 0) {
		/* It answers a send whose hook has not run yet: begin here. */
		if (s->exchange.last) {
			observe(s, tp);
			emit_exchange(s);
			begin_exchange(s, tp, now);
		} else {
			s->exchange.send = now;
			s->exchange.acked = 0;
		}
		count_request(s, ack);
	}
	/*
	 * Before the send write_seq was where it starts, so an ACK has to pass
	 * that; after it write_seq is where it ends.
	 */
	if (!s->exchange.acked && (__s32)(ack - tp->write_seq) >= 0 &&
	    (send_hook_after || (__s32)(ack - s->write_seq) > 0))
		s->exchange.acked = now;

	header = (th.offset >> 4) * 4;
	len = skb->len;
	next = tp->rcv_nxt;
	end = seq + len - header;
	/* Bare ACKs, keep-alive and window probes, duplicates: nothing new. */
	if (len <= header || (__s32)(end - next) <= 0) {
		observe(s, tp);
		return 0;
	}
	if (!s->exchange.first) {
		s->exchange.first = now;
		s->reply_end = next;
	} else if (now - s->exchange.last > s->exchange.stall) {
		s->exchange.stall = now - s->exchange.last;
	}
	s->exchange.last = now;
	more = end - s->reply_end;
	if (more > 0) {
		s->exchange.reply += more;
		s->reply_end = end;
	}
	observe(s, tp);
	return 0;
}

#endif
