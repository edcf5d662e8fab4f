package rdma

import "grayfail/event"

// Meaning is what a hardware counter counts, whatever its driver calls it.
type Meaning = event.RDMAMeaning

// Meanings by the names used here.
const (
	Retransmission = event.RDMARetransmission
	Timeout        = event.RDMATimeout
	SequenceNAK    = event.RDMASequenceNAK
	OutOfSequence  = event.RDMAOutOfSequence
	Duplicate      = event.RDMADuplicate
	RNRReceived    = event.RDMARNRReceived
	RNRSent        = event.RDMARNRSent
	RetryExceeded  = event.RDMARetryExceeded
	Congestion     = event.RDMACongestion
	LinkDown       = event.RDMALinkDown
)

// MeaningOf is the meaning of a counter by the name that its driver gives it;
// "" for those that count what is in order (packets, bytes) or that no driver
// known here has. Where two drivers use one name, they mean the same.
func MeaningOf(name string) Meaning {
	for i := range meanings {
		if meanings[i].event == name {
			return meanings[i].meaning
		}
	}
	return ""
}

// meanings lists the counters by driver.
var meanings = [...]struct {
	event   string
	meaning Meaning
}{
	// rxe, drivers/infiniband/sw/rxe/rxe_hw_counters.c.
	{"completer_retry_err", Retransmission},
	{"rcvd_seq_err", SequenceNAK},
	{"out_of_seq_request", OutOfSequence},
	{"duplicate_request", Duplicate}, // mlx5 as well
	{"rcvd_rnr_err", RNRReceived},
	{"send_rnr_err", RNRSent},
	{"retry_exceeded_err", RetryExceeded},
	{"retry_rnr_exceeded_err", RetryExceeded},
	{"link_downed", LinkDown},

	// mlx5, drivers/infiniband/hw/mlx5/counters.c.
	{"roce_adp_retrans", Retransmission},
	{"local_ack_timeout_err", Timeout}, // bnxt_re as well, newer
	{"roce_adp_retrans_to", Timeout},
	{"packet_seq_err", SequenceNAK},      // bnxt_re as well, newer
	{"implied_nak_seq_err", SequenceNAK}, // bnxt_re as well, newer
	{"out_of_sequence", OutOfSequence},
	{"rnr_nak_retry_err", RNRReceived}, // bnxt_re as well, newer
	{"out_of_buffer", RNRSent},
	{"np_ecn_marked_roce_packets", Congestion},
	{"np_cnp_sent", Congestion},
	{"rp_cnp_handled", Congestion},

	// mlx4, drivers/infiniband/hw/mlx4/main.c: rq is the responder, sq the
	// requester.
	{"sq_num_to", Timeout},
	{"sq_num_oos", SequenceNAK},
	{"rq_num_oos", OutOfSequence},
	{"rq_num_dup", Duplicate},
	{"sq_num_rnr", RNRReceived},
	{"rq_num_rnr", RNRSent},
	{"sq_num_tree", RetryExceeded}, // transport retries
	{"sq_num_rree", RetryExceeded}, // RNR retries

	// irdma, drivers/infiniband/hw/irdma/verbs.c; iWARP runs over TCP.
	{"tcpRetransSegs", Retransmission},
	{"RetransSegs", Retransmission},
	{"RTO", Timeout},
	{"Nak Sequence Error", SequenceNAK},
	{"Nak Sequence Error Implied", SequenceNAK},
	{"Rcvd Out of order packets", OutOfSequence},
	{"RNR received", RNRReceived},
	{"RNR sent", RNRSent},
	{"cnpHandled", Congestion},
	{"cnpSent", Congestion},
	{"RxECNMrkd", Congestion},

	// bnxt_re, drivers/infiniband/hw/bnxt_re/hw_counters.c.
	{"to_retransmits", Timeout},
	{"seq_err_naks_rcvd", SequenceNAK},
	{"missing_resp", SequenceNAK},
	{"dup_req", Duplicate},
	{"rnr_naks_rcvd", RNRReceived},
	{"rx_out_of_buffer", RNRSent},
	{"max_retry_exceeded", RetryExceeded},
	{"rx_ecn_marked_pkts", Congestion},
}
