//! Use of the channels: the three orders of commands and data under load, and what reads of parts
//! of units transfer.

use std::collections::VecDeque;

use crate::common::lab::*;
use prism_base::{Bytes, Nanos, Rng};
use prism_engine::{ChannelArbitration, ReadTransfer};
use prism_nand::PageTimes;
use prism_nand::timing::transfer_time;
use prism_ssd::spec::Cell;
use prism_ssd::{Completion, Drive, DriveSpec, HostOp, Request};

/// Eight channels of eight dies with pages of 8 KiB, tR 75 us and 333 MB/s per channel: the sample
/// drive of MQSim, with few blocks.
const CHANNELS: usize = 8;
const DIES: usize = 64;
const PAGE: u64 = 8192;
const T_READ: u64 = 75_000;
const RATE: u64 = 333_000_000;
const DEPTH: usize = 64;

fn deep(arbitration: ChannelArbitration, t_command: Nanos) -> DriveSpec {
    let mut device = DriveSpec::preset("femu").unwrap();
    device.flash.cell = Cell::Mlc;
    device.flash.blocks_per_plane = 16;
    device.flash.pages_per_block = 64;
    device.flash.page = Bytes(PAGE);
    device.flash.t_read = PageTimes::uniform(Nanos(T_READ));
    device.flash.channel_bandwidth = Some(RATE);
    device.flash.t_command = t_command;
    device.flash.channel_arbitration = arbitration;
    device.ftl.mapping_unit = Bytes(PAGE);
    device.drive.capacity = Bytes(280 << 20);
    device.drive.power_loss_protection = true;
    device
}

/// Mean latency in microseconds of random reads at queue depth 64, after a time to settle.
fn mean_of_drive(arbitration: ChannelArbitration, t_command: Nanos) -> f64 {
    let device = deep(arbitration, t_command);
    let mut drive = filled(&device);
    let units = u64::from(device.logical_units());
    let mut rng = Rng::stream(1, "reads");
    let mut submit = |drive: &mut Drive| {
        let request = Request::new(HostOp::Read, rng.below(units) * PAGE, PAGE, 0);
        drive.submit(request, drive.now()).unwrap();
    };
    (0..DEPTH).for_each(|_| submit(&mut drive));
    let (mut done, mut sum, mut count): (Vec<Completion>, _, _) = (Vec::new(), 0, 0);
    while count < 200_000 {
        drive.next_completion(&mut done);
        for completion in done.drain(..) {
            sum += completion.completed.since(completion.submitted).0;
            count += 1;
            submit(&mut drive);
        }
    }
    sum as f64 / f64::from(count) / 1000.0
}

/// The same as a queueing model: 64 customers, each at a random die; a die takes its command from
/// the channel, then tR, then the transfer on the channel.
struct Model {
    arbitration: ChannelArbitration,
    t_command: u64,
    now: u64,
    rng: Rng,
    /// Customers that wait for each die, by the time of their arrival; the first one has it.
    dies: Vec<VecDeque<u64>>,
    channels: Vec<Bus>,
    /// Ends of tR, with the die.
    arrays: Vec<(u64, usize)>,
    latencies: Vec<u64>,
}

/// A channel: dies that wait to get a command, and to send data, with the time left of the first.
#[derive(Clone, Default)]
struct Bus {
    commands: VecDeque<(usize, u64)>,
    data: VecDeque<(usize, u64)>,
    /// Both, in the order of requests: whether it is a command.
    order: VecDeque<bool>,
    /// Whether a command, or data, has begun.
    begun: Option<bool>,
}

impl Bus {
    /// Whether a command is next; `None` if the channel is idle.
    fn next(&self, arbitration: ChannelArbitration) -> Option<bool> {
        let (commands, data) = (!self.commands.is_empty(), !self.data.is_empty());
        match arbitration {
            ChannelArbitration::CommandsFirst => (commands || data).then_some(commands),
            _ if self.begun.is_some() => self.begun,
            ChannelArbitration::DataFirst => (commands || data).then_some(!data),
            ChannelArbitration::Fifo => self.order.front().copied(),
        }
    }
}

impl Model {
    fn arrive(&mut self) {
        let die = self.rng.below(DIES as u64) as usize;
        self.dies[die].push_back(self.now);
        if self.dies[die].len() == 1 {
            self.request(die, true);
        }
    }

    fn request(&mut self, die: usize, command: bool) {
        let transfer = transfer_time(Bytes(PAGE), RATE).0;
        let bus = &mut self.channels[die % CHANNELS];
        match command {
            true => bus.commands.push_back((die, self.t_command)),
            false => bus.data.push_back((die, transfer)),
        }
        bus.order.push_back(command);
    }

    /// Lets time pass until the next use of a channel or array ends.
    fn step(&mut self) {
        let uses: Vec<_> = self.channels.iter().map(|bus| bus.next(self.arbitration)).collect();
        let left = |(bus, command): (&Bus, &Option<bool>)| match command {
            None => u64::MAX,
            Some(true) => bus.commands[0].1,
            Some(false) => bus.data[0].1,
        };
        let bus = self.channels.iter().zip(&uses).map(left).min().unwrap();
        let array = self.arrays.iter().map(|&(at, _)| at - self.now).min().unwrap_or(u64::MAX);
        let span = bus.min(array);
        self.now += span;
        for (channel, command) in uses.into_iter().enumerate() {
            let Some(command) = command else { continue };
            let bus = &mut self.channels[channel];
            bus.begun = Some(command);
            let queue = if command { &mut bus.commands } else { &mut bus.data };
            queue[0].1 -= span;
            if queue[0].1 > 0 {
                continue;
            }
            let (die, _) = queue.pop_front().unwrap();
            bus.begun = None;
            let place = bus.order.iter().position(|&it| it == command).unwrap();
            bus.order.remove(place);
            if command {
                self.arrays.push((self.now + T_READ, die));
            } else {
                let arrived = self.dies[die].pop_front().unwrap();
                self.latencies.push(self.now - arrived);
                if !self.dies[die].is_empty() {
                    self.request(die, true);
                }
                self.arrive();
            }
        }
        let now = self.now;
        let done = self.arrays.extract_if(.., |&mut (at, _)| at == now).collect::<Vec<_>>();
        done.into_iter().for_each(|(_, die)| self.request(die, false));
    }
}

/// Mean latency of the model in microseconds.
fn mean_of_model(arbitration: ChannelArbitration, t_command: Nanos) -> f64 {
    let mut model = Model {
        arbitration,
        t_command: t_command.0,
        now: 0,
        rng: Rng::stream(2, "model"),
        dies: vec![VecDeque::new(); DIES],
        channels: vec![Bus::default(); CHANNELS],
        arrays: Vec::new(),
        latencies: Vec::new(),
    };
    (0..DEPTH).for_each(|_| model.arrive());
    while model.latencies.len() < 100_000 {
        model.step();
    }
    model.latencies.iter().sum::<u64>() as f64 / model.latencies.len() as f64 / 1000.0
}

#[test]
fn each_order_of_commands_and_data_agrees_with_a_queueing_model() {
    let mut means = Vec::new();
    for arbitration in ChannelArbitration::ALL {
        let name = arbitration.name();
        let close = |what: &str, is: f64, expected: f64, within: f64| {
            assert!((is / expected - 1.0).abs() < within, "{name}, {what}: {is} not {expected}");
        };
        let [none, least, usual] = [0, 1, 290].map(|ns| mean_of_drive(arbitration, Nanos(ns)));
        close("290 ns", usual, mean_of_model(arbitration, Nanos(290)), 0.02);
        // A latency grows by more than its own command, because others wait for it too.
        close("0 and 1 ns", none, least, 0.01);
        close("0 and 290 ns", none, usual, 0.02);
        means.push(usual);
    }
    assert!(means.is_sorted_by(|a, b| 1.1 * a < *b), "{means:?}");
}

/// A unit that is a page, four units to a page, and a unit of two pages.
fn sizes(transfer: ReadTransfer) -> [DriveSpec; 3] {
    let mut page = lab();
    page.flash.read_transfer = transfer;
    let mut part_of_page = page.clone();
    part_of_page.flash.page = Bytes(4 * UNIT);
    let mut two_pages = page.clone();
    two_pages.flash.planes = 2;
    two_pages.flash.multi_plane = true;
    two_pages.flash.page = Bytes(UNIT / 2);
    [page, part_of_page, two_pages]
}

#[test]
fn reads_of_parts_of_units_transfer_what_the_device_says() {
    // First byte and length; sectors needed; for each of the three sizes the commands, and the
    // bytes of the units, or of the pages that are needed of a unit of two.
    let reads = [
        (0, 512, 1, [(1, 4096), (1, 4096), (1, 2048)]),
        (UNIT - 512, 1024, 2, [(2, 8192), (1, 8192), (2, 4096)]),
        (1000, 600, 3, [(1, 4096), (1, 4096), (1, 2048)]),
        (UNIT / 2, 512, 1, [(1, 4096), (1, 4096), (1, 2048)]),
        (0, UNIT, 8, [(1, 4096), (1, 4096), (1, 4096)]),
        (512, 2 * UNIT, 16, [(3, 12288), (1, 12288), (3, 10240)]),
    ];
    for transfer in ReadTransfer::ALL {
        for (size, device) in sizes(transfer).iter().enumerate() {
            let mut drive = filled(device);
            for (offset, len, sectors, of_sizes) in reads {
                let (commands, whole) = of_sizes[size];
                let moved = match transfer {
                    ReadTransfer::Unit => whole,
                    ReadTransfer::Sectors => sectors * 512,
                };
                // 400 MB/s on the channel and 2 GB/s on the link: whole nanoseconds.
                let expected = FIRMWARE.0 + commands * READ.0 + moved * 5 / 2 + len / 2;
                let latency = serve(&mut drive, Request::new(HostOp::Read, offset, len, 0));
                let name = transfer.name();
                assert_eq!(latency, Nanos(expected), "{name}, size {size}: {offset}+{len}");
            }
        }
    }
}
