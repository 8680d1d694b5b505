//! Finds the end of a packet that is being filled, from its events instead of its header.

use super::clock::PacketTime;
use super::domain::Domains;
use super::events::{Packet, decode};
use super::input::PADDING;
use crate::event::Event;
use crate::format::{PacketHeader, TIME_MASK};
use crate::location::Locations;
use crate::visitor::OnEvent;

/// The fields of a header that change with every event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketEnd {
    pub(crate) time: u64,
    pub(crate) id: u64,
}

/// Derives the end of a packet from its events; `None` if they do not end where the packet does.
pub(crate) fn measure(header: &PacketHeader, packet: &[u8]) -> Option<PacketEnd> {
    let events = packet.get(header.len()..header.size)?;
    let mut bytes = events.to_vec();
    bytes.resize(events.len() + PADDING, 0);
    let packet = Packet {
        bytes: &bytes,
        end: events.len(),
        number: header.domain,
        time: PacketTime {
            recorded: header.time_begin,
            since_start: 0,
            span: u64::from(TIME_MASK),
            held: false,
        },
        first_id: header.first_id,
        start: 0,
        last_delta: 0,
    };
    let mut domains = Domains::default();
    let domain = domains.get(header.domain, 0, 0, false);
    let mut last = 0;
    let mut visitor = OnEvent(|event: Event<'_>, _: &Locations| last = event.time());
    let outcome = decode::<false>(&packet, domain, &mut Locations::default(), &mut visitor);
    (outcome.failure.is_none() && outcome.bad_times == 0).then(|| PacketEnd {
        time: header.time_begin.saturating_add(last),
        id: outcome.next_id,
    })
}
