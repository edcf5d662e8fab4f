/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What every probe does with a socket: is it watched, whose is it, its state. */
#ifndef GRAYFAIL_SOCKETS_H
#define GRAYFAIL_SOCKETS_H

#include "maps.h"

static __always_inline void count_lost(__u32 reason)
{
	__u64 *n = bpf_map_lookup_elem(&lost, &reason);

	if (n)
		(*n)++;
}

/* port is in host order. */
static __always_inline int port_watched(__u16 port)
{
	__u32 word = port / 64;
	__u64 *bits = bpf_map_lookup_elem(&ports, &word);

	return bits && *bits >> (port % 64) & 1;
}

static __always_inline int namespace_watched(const struct sock *sk)
{
	__u32 inode = sk->__sk_common.skc_net.net->ns.inum;

	return bpf_map_lookup_elem(&namespaces, &inode) != 0;
}

static __always_inline int have_cookie(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id___grayfail, BPF_FUNC_check_mtu___grayfail);
}

/* The table's key: the cookie, before 5.12 the address (closing forgets it). */
static __always_inline __u64 make_key(const struct sock *sk)
{
	return have_cookie() ? bpf_get_socket_cookie((void *)sk) : (__u64)sk;
}

/* Of a socket that is in the table its cookie exists: a plain load will do. */
static __always_inline __u64 known_key(const struct sock *sk)
{
	return have_cookie() ? sk->__sk_common.skc_cookie.counter : (__u64)sk;
}

static __always_inline void put_v4(__u8 *to, __be32 addr)
{
	__builtin_memset(to, 0, 10);
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &addr, sizeof(addr));
}

static __always_inline void fill_addresses(struct flow *f, const struct sock_common *sk)
{
	f->peer_port = bpf_ntohs(BPF_CORE_READ(sk, skc_dport));
	f->local_port = BPF_CORE_READ(sk, skc_num);
	f->netns = BPF_CORE_READ(sk, skc_net.net, ns.inum);
	/* Without CONFIG_IPV6 the fields are missing. */
	if (BPF_CORE_READ(sk, skc_family) == AF_INET6 && bpf_core_field_exists(sk->skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&f->peer, sk, skc_v6_daddr.in6_u.u6_addr8);
		BPF_CORE_READ_INTO(&f->local, sk, skc_v6_rcv_saddr.in6_u.u6_addr8);
		return;
	}
	put_v4(f->peer, BPF_CORE_READ(sk, skc_daddr));
	put_v4(f->local, BPF_CORE_READ(sk, skc_rcv_saddr));
}

static __always_inline void fill_flow(struct flow *f, const struct sock *sk, __u32 role)
{
	fill_addresses(f, &sk->__sk_common);
	/*
	 * A closing socket has given its port back (inet_put_port() clears
	 * skc_num before the state is stored); inet_sport still holds it.
	 */
	if (!f->local_port)
		f->local_port = bpf_ntohs(BPF_CORE_READ((const struct inet_sock *)sk, inet_sport));
	f->socket = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	f->role = role;
}

/*
 * Owner: the process of the current task. Only called where the kernel works
 * for the owner (send, connect). A kernel thread that sends for somebody (TLS,
 * NFS) leaves the owner that was known before. The leader's name, since the
 * sending thread may carry one of its own.
 */
static __always_inline void fill_owner(struct flow *f)
{
	const struct task_struct *task = (void *)bpf_get_current_task();
	const struct task_struct *leader;

	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return;
	f->pid = bpf_get_current_pid_tgid() >> 32;
	leader = BPF_CORE_READ(task, group_leader);
	bpf_core_read(&f->comm, sizeof(f->comm), &leader->comm);
}

/*
 * Servers rename themselves after they connect, and sockets are handed to
 * children: look again when another process sends, and now and then.
 */
#define OWNER_EVERY 64

static __always_inline void refresh_owner(struct socket_state *s)
{
	if (s->flow.pid == bpf_get_current_pid_tgid() >> 32 && ++s->sends < OWNER_EVERY)
		return;
	s->sends = 0;
	fill_owner(&s->flow);
}

static __always_inline struct socket_state *find_socket(const struct sock *sk)
{
	__u64 key = known_key(sk);

	return bpf_map_lookup_elem(&sockets, &key);
}

/* Puts a socket into the table; a full table is counted. */
static __always_inline struct socket_state *track_socket(const struct sock *sk, __u64 key, __u32 role)
{
	struct socket_state fresh = {};

	fill_flow(&fresh.flow, sk, role);
	if (bpf_map_update_elem(&sockets, &key, &fresh, BPF_ANY)) {
		count_lost(LOST_SOCKETS);
		return 0;
	}
	return bpf_map_lookup_elem(&sockets, &key);
}

#endif
