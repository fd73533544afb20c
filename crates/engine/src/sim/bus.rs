//! The use of channels: command cycles and transfers of the dies, in the order of the channel's
//! arbitration.

use prism_base::{Nanos, SimTime};
use prism_nand::DieId;

use super::SimDevice;
use super::channel::Channel;
use crate::config::ChannelArbitration;

impl SimDevice {
    /// Sends the command of an operation to `die`; returns when it has been sent.
    #[inline(always)]
    pub(super) fn send_command(&mut self, die: DieId, now: SimTime) -> SimTime {
        if self.instant_commands { now } else { self.arbitrate(die, Nanos::ZERO, now) }
    }

    /// Sends the command of a program to `die`, then its data, for `transfer`; returns when the
    /// data has been sent.
    #[inline(never)]
    pub(super) fn send_program(&mut self, die: DieId, transfer: Nanos, now: SimTime) -> SimTime {
        if !self.interrupts_transfers {
            return self.arbitrate(die, transfer, now);
        }
        let sent = self.arbitrate(die, Nanos::ZERO, now);
        self.reserve_channel(die, transfer, sent, now)
    }

    /// Sends a command to `die`, and data for `transfer` with it; returns when both have been sent.
    #[inline(never)]
    fn arbitrate(&mut self, die: DieId, transfer: Nanos, now: SimTime) -> SimTime {
        let time = self.config.timing.t_command + transfer;
        // Commands that take no time wait for the same transfers as those that take little: not for
        // one that is requested at the same time.
        let first = self.config.timing.t_command == Nanos::ZERO;
        let turn = (now, if first { 0 } else { self.turn.0 });
        let arbitration = self.config.channel_arbitration;
        let (channel, moved) = self.channel_of(die);
        match arbitration {
            ChannelArbitration::CommandsFirst => channel.interrupt(time, now, moved),
            ChannelArbitration::Fifo => channel.occupy(time, turn, moved),
            ChannelArbitration::DataFirst => channel.wait_for_data(time, turn, moved),
        }
    }

    /// Takes the channel of `die` for a transfer as soon as it is free; returns when the transfer
    /// ends.
    #[inline]
    pub(super) fn occupy_channel(&mut self, die: DieId, time: Nanos, now: SimTime) -> SimTime {
        if time == Nanos::ZERO { now } else { self.take_channel(die, time, now) }
    }

    #[inline(always)]
    fn take_channel(&mut self, die: DieId, time: Nanos, now: SimTime) -> SimTime {
        if self.interrupts_transfers {
            return self.reserve_channel(die, time, now, now);
        }
        let turn = (now, self.turn.0);
        let (channel, moved) = self.channel_of(die);
        channel.occupy(time, turn, moved)
    }

    /// Reserves the channel of `die` for `time` as soon as it is free after `asks`, when the cells
    /// will be done; returns when the transfer ends.
    #[inline(always)]
    pub(super) fn reserve_channel(
        &mut self,
        die: DieId,
        time: Nanos,
        asks: SimTime,
        now: SimTime,
    ) -> SimTime {
        if time == Nanos::ZERO {
            return asks;
        }
        let (turn, interruptible) = ((now, self.turn.0), self.interrupts_transfers);
        let (channel, moved) = self.channel_of(die);
        if interruptible {
            return channel.reserve_interruptible(time, (asks, die.0), now, moved);
        }
        channel.reserve(time, (asks, die.0), turn, moved)
    }

    /// The channel of `die`, and the function to be called for dies whose transfer moves: by how
    /// much, and to when.
    #[inline]
    fn channel_of(&mut self, die: DieId) -> (&mut Channel, impl FnMut(u32, Nanos, SimTime)) {
        let (dies, timers) = (&mut self.dies, &mut self.timers);
        let moved = |die: u32, later, until| {
            let state = &mut dies[die as usize];
            if state.register.is_some() {
                state.register_until = until;
            } else {
                state.delay_program(later, until);
            }
            timers.set(die, state.next_at());
        };
        (&mut self.channels[self.layout.channel_of(die) as usize], moved)
    }
}
