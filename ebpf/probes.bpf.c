//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * One object for all probes, since they share their maps; user space loads
 * and attaches each program alone, so that one refusal costs one program.
 */
#include "exchange.h"
#include "retransmit.h"
#include "sockstate.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
