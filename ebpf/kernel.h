/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel structures the probes read, and of each only the fields they
 * read. preserve_access_index makes every access a CO-RE relocation: offsets
 * come from the running kernel's BTF, so order and padding here mean nothing.
 */
#ifndef GRAYFAIL_KERNEL_H
#define GRAYFAIL_KERNEL_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};
enum {
	BPF_RB_NO_WAKEUP = 1,
};

/*
 * bpf_get_socket_cookie() may be called from tracing programs since 5.12
 * (c5dbb89fc2ac). This helper came in the same release, so its number in the
 * kernel's enum says whether the other one is allowed.
 */
enum bpf_func_id___grayfail {
	BPF_FUNC_check_mtu___grayfail = 163,
};

enum {
	AF_INET = 2,
	AF_INET6 = 10,
	IPPROTO_TCP = 6,
	PF_KTHREAD = 0x00200000, /* include/linux/sched.h */
};

/* include/net/tcp_states.h */
enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_SYN_RECV = 3,
	TCP_FIN_WAIT1 = 4,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
	TCP_LAST_ACK = 9,
};

/* include/uapi/linux/tcp.h, enum tcp_ca_state */
enum {
	TCP_CA_Open = 0,
	TCP_CA_Disorder = 1,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};

typedef struct {
	__s64 counter;
} atomic64_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol; /* a bit field before 5.6 */
};

struct inet_sock {
	struct sock sk;
	__be16 inet_sport;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 rcv_nxt;
	__u32 snd_una;
	__u32 write_seq;
	__u32 srtt_us; /* smoothed RTT << 3 */
	struct minmax rtt_min;
	__u32 rcv_ooopack;
	__u32 total_retrans;
	__u32 dsack_dups;
};

struct request_sock {
	struct sock_common __req_common;
};

struct sk_buff {
	unsigned int len;
	unsigned char *data;
};

struct iov_iter {
	unsigned long count;
};

struct msghdr {
	struct iov_iter msg_iter;
};

struct task_struct {
	unsigned int flags;
	struct task_struct *group_leader;
	char comm[16];
};

#pragma clang attribute pop

/* RFC 9293: on the wire, so the same on every kernel. */
struct tcp_header {
	__be16 source;
	__be16 dest;
	__be32 seq;
	__be32 ack;
	__u8 offset; /* in 32 bit words, upper four bits */
	__u8 flags;
	__be16 window;
};

#endif
