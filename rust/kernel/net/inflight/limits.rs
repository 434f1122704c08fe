// SPDX-License-Identifier: GPL-2.0

//! Packets that need more descriptors than a NIC takes.

use super::{
    submit::is_nonlinear,
    Limits, //
};
use crate::net::skbuff::SkBuff;

impl Limits {
    /// Returns whether a packet needs no more descriptors than one packet may, with `contexts` for
    /// what the driver asks of the NIC.
    ///
    /// [`TxProducer::submit`](super::TxProducer::submit) refuses those that need more. To withdraw
    /// scatter-gather and segmentation from them keeps the stack from that: it copies them, see
    /// [`FeaturesCheckOps`](crate::net::device::features_check::FeaturesCheckOps).
    #[inline(always)]
    pub fn takes(self, skb: &SkBuff, contexts: usize) -> bool {
        // A packet without fragments needs no look at more than its length.
        let frags = if is_nonlinear(skb) { skb.nr_frags() } else { 0 };
        let full = skb.len().checked_div(self.segment_len).unwrap_or(0);
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        let most = (full as usize).saturating_add(frags + 1);

        most.saturating_add(contexts) <= self.descriptors || self.counts(skb, contexts)
    }

    /// As [`Self::takes`], part by part: each may end with a descriptor that is not full, or none.
    #[cold]
    fn counts(self, skb: &SkBuff, contexts: usize) -> bool {
        let pieces = |len: u32| len.div_ceil(self.segment_len.max(1)) as usize;
        let head = contexts.saturating_add(pieces(skb.head_len()));
        let all = if is_nonlinear(skb) {
            skb.frags()
                .fold(head, |sum, frag| sum.saturating_add(pieces(frag.len())))
        } else {
            head
        };

        all <= self.descriptors
    }
}
