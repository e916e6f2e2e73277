//! How many packets are looked at: whoever sends too many is not heard for the rest of the second.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// Packets per second of one sender. A machine with a hundred services sends fewer.
const OF_SENDER: u32 = 200;

/// Packets per second of all senders together.
const OF_ALL: u32 = 2000;

/// The packets of one second.
#[derive(Default)]
pub(crate) struct Budget {
    since: Option<Instant>,
    all: u32,
    senders: HashMap<IpAddr, u32>,
}

impl Budget {
    /// Whether to look at a packet of this sender.
    pub(crate) fn spend(&mut self, sender: IpAddr, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= Duration::from_secs(1)) {
            (self.since, self.all) = (Some(now), 0);
            self.senders.clear();
        }
        if self.all >= OF_ALL {
            return false;
        }
        let sent = self.senders.entry(sender).or_default();
        *sent += 1;
        let allowed = *sent <= OF_SENDER;
        self.all += u32::from(allowed);
        allowed
    }
}
