/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the probes share: the values user space decodes (decode.go follows
 * these layouts field by field, a test compares the two through BTF), the
 * maps, and the constants set before the programs are loaded.
 */
#ifndef GRAYFAIL_MAPS_H
#define GRAYFAIL_MAPS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#define COMM_LEN 16
#define PORT_WORDS 1024 /* of 64 ports each */

enum role {
	ROLE_CLIENT = 0,  /* the peer port is watched: we opened it */
	ROLE_SERVER = 1,  /* the local port is watched: the peer opened it */
	ROLE_IGNORED = 2, /* accepted, and the peer's ephemeral port is a watched number by chance */
};

enum event_kind {
	EVENT_EXCHANGE = 1,
	EVENT_RETRANSMIT = 2,
	EVENT_CONNECTION = 3,
};

enum retransmit_kind {
	RETRANSMIT_FAST = 1,
	RETRANSMIT_RTO = 2,
	RETRANSMIT_TLP = 3,
	RETRANSMIT_CWR = 4,
	RETRANSMIT_SYN = 5,
	RETRANSMIT_SYNACK = 6,
};

/* Addresses are IPv6, IPv4 as ::ffff:a.b.c.d; ports are in host order. */
struct flow {
	__u64 socket; /* cookie; 0 where there is none */
	__u8 local[16];
	__u8 peer[16];
	__u16 local_port;
	__u16 peer_port;
	__u32 netns; /* inode */
	__u32 pid;   /* thread group id; 0 not known */
	__u32 role;
	__u8 comm[COMM_LEN]; /* of the thread group leader */
};

/* One request/reply turn. Times are CLOCK_MONOTONIC nanoseconds, 0 is never. */
struct exchange {
	__u64 send;  /* last send before the reply */
	__u64 first; /* first reply byte */
	__u64 last;  /* last reply byte so far */
	__u64 acked; /* everything sent was ACKed */
	__u64 stall; /* span: largest gap between reply segments */
	__u64 request; /* bytes */
	__u64 reply;   /* bytes */
	__u32 srtt_us;
	__u32 min_rtt_us; /* ~0 without a sample */
	__u32 out_of_order;
	__u32 retransmits;
	__u32 dsacks;
	__u32 unused;
};

struct exchange_event {
	__u32 kind;
	__u32 unused;
	struct flow flow;
	struct exchange exchange;
};

struct retransmit_event {
	__u32 kind;
	__u32 retransmit; /* enum retransmit_kind */
	__u64 time;
	struct flow flow;
};

struct connection_event {
	__u32 kind;
	__u32 established;
	__u64 start;
	__u64 end;
	struct flow flow;
};

/* What is known of one socket. */
struct socket_state {
	struct flow flow;
	struct exchange exchange; /* send 0: none yet */
	__u64 opened;  /* SYN sent, or accepted; 0: older than the probes */
	__u64 planned; /* bytes of the send under way, not yet in exchange.request */
	__u32 established;
	__u32 write_seq; /* up to here exchange.request has counted */
	__u32 reply_end; /* highest sequence number of the reply */
	__u32 base_out_of_order; /* tcp_sock counters when the exchange began */
	__u32 base_retransmits;
	__u32 base_dsacks;
	__u32 sends; /* since the owner was looked at */
	__u32 unused;
};

enum lost_reason {
	LOST_RING = 0,    /* events: the ring buffer was full */
	LOST_SOCKETS = 1, /* sockets: the table was full */
	LOST_REASONS = 2,
};

/* Sizes are set by user space; those here are the defaults. */
/*
 * One bit a port, in words of 64. A hash table would do, at 15 ns a look-up
 * instead of 2: and this look-up is what every packet of the host pays.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORT_WORDS);
	__type(key, __u32);
	__type(value, __u64);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32); /* inode */
	__type(value, __u8);
} namespaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct socket_state);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOST_REASONS);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

/* The retransmit tracepoint has an err argument and fires for failed tries (6.15). */
volatile const __u8 retransmit_has_err;
/* The send hook runs after the send: write_seq has advanced already. */
volatile const __u8 send_hook_after;

/* The ring's types: nothing else would keep them in the object's BTF. */
const struct exchange_event *const keep_exchange_event;
const struct retransmit_event *const keep_retransmit_event;
const struct connection_event *const keep_connection_event;

#endif
