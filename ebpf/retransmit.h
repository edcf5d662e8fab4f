/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Retransmits of either side: one event per skb, which may be several segments. */
#ifndef GRAYFAIL_RETRANSMIT_H
#define GRAYFAIL_RETRANSMIT_H

#include "sockets.h"

static __always_inline __u32 retransmit_kind(const struct sock *sk)
{
	__u8 state = sk->__sk_common.skc_state;

	if (state == TCP_SYN_SENT)
		return RETRANSMIT_SYN;
	if (state == TCP_SYN_RECV) /* fast open: the child itself repeats the SYN-ACK */
		return RETRANSMIT_SYNACK;
	/* A bit field: the verifier refuses a direct load. */
	switch (BPF_CORE_READ_BITFIELD_PROBED((struct inet_connection_sock *)sk, icsk_ca_state)) {
	case TCP_CA_Loss:
		return RETRANSMIT_RTO;
	case TCP_CA_Recovery:
		return RETRANSMIT_FAST;
	case TCP_CA_CWR:
		return RETRANSMIT_CWR;
	default:
		return RETRANSMIT_TLP;
	}
}

static __always_inline struct retransmit_event *reserve_retransmit(__u32 kind)
{
	struct retransmit_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		count_lost(LOST_RING);
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->kind = EVENT_RETRANSMIT;
	e->retransmit = kind;
	e->time = bpf_ktime_get_ns();
	return e;
}

/*
 * (sk, skb) before 6.15, (sk, skb, err) since: the third word of the context
 * must not be touched where there is none, so no BPF_PROG here.
 */
SEC("tp_btf/tcp_retransmit_skb")
int retransmit(__u64 *ctx)
{
	const struct sock *sk = (const struct sock *)ctx[0];
	int client = port_watched(bpf_ntohs(sk->__sk_common.skc_dport));
	struct retransmit_event *e;
	struct socket_state *s;

	if (!client && !port_watched(sk->__sk_common.skc_num))
		return 0;
	if (retransmit_has_err && (int)ctx[2] != 0)
		return 0;
	s = find_socket(sk);
	if (s && s->flow.role == ROLE_IGNORED)
		return 0;
	if (!s && !namespace_watched(sk))
		return 0;
	e = reserve_retransmit(retransmit_kind(sk));
	if (!e)
		return 0;
	if (s)
		e->flow = s->flow;
	/* At SYN_SENT the local port had not been chosen when the state was made. */
	if (!s || !s->flow.local_port)
		fill_flow(&e->flow, sk, client ? ROLE_CLIENT : ROLE_SERVER);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

/* A SYN-ACK sent again (tcp_rtx_synack()): there is no socket yet, only a request. */
SEC("tp_btf/tcp_retransmit_synack")
int BPF_PROG(retransmit_synack, const struct sock *sk, const struct request_sock *req)
{
	struct retransmit_event *e;

	if (!port_watched(req->__req_common.skc_num) || !namespace_watched(sk))
		return 0;
	e = reserve_retransmit(RETRANSMIT_SYNACK);
	if (!e)
		return 0;
	fill_addresses(&e->flow, &req->__req_common);
	e->flow.role = ROLE_SERVER;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
