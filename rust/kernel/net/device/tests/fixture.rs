// SPDX-License-Identifier: GPL-2.0

//! A network device without hardware, and operations of the core on it.

use super::{
    dummy::{
        Data,
        Dummy,
        Log, //
    },
    irq::Irq, //
};

use super::super::{
    ops,
    registration::Registration,
    Device,
    Driver, //
};

use crate::{
    alloc::Flags,
    bindings,
    device,
    error::to_result,
    faux,
    net::skbuff::{
        SkBuff,
        UniqueSkBuff, //
    },
    prelude::*,
    softirq::BhGuard,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

const NAME: usize = bindings::ETH_GSTRING_LEN as usize;

/// A name for a bus device, which no other one has or had: a test that fails leaves its device.
pub(super) fn own_name(prefix: &str) -> Result<CString> {
    static COUNT: Atomic<u32> = Atomic::new(0);

    let number = COUNT.fetch_add(1, Relaxed);
    CString::try_from_fmt(fmt!("{prefix}_{number}"))
}

/// A packet that no protocol wants.
pub(in crate::net::device) fn packet(flags: Flags) -> Result<SkBuff> {
    let mut skb = UniqueSkBuff::alloc(128, flags)?;

    skb.put(&[0xff; 12])?;
    skb.put(&[0x88, 0xb5])?;
    skb.put(&[0; 46])?;
    Ok(skb.into())
}

/// Transmits a packet through queue 0 of a registered device.
pub(in crate::net::device) fn transmit(skb: SkBuff, dev: *mut bindings::net_device) -> i32 {
    let skb = skb.into_raw().as_ptr();

    // SAFETY: The packet is ours, and is given away here. If it is returned, we free it.
    unsafe {
        (*skb)
            .__bindgen_anon_1
            .__bindgen_anon_1
            .__bindgen_anon_1
            .dev = dev;
        let result = bindings::__dev_direct_xmit(skb, 0);
        if result == bindings::netdev_tx::NETDEV_TX_BUSY.0 {
            drop(SkBuff::from_raw(core::ptr::NonNull::new_unchecked(skb)));
        }
        result
    }
}

/// Calls `ndo_start_xmit` for queue 0 of a device, as if the lock of the queue could be taken.
pub(in crate::net::device) fn transmit_nested(
    dev: *mut bindings::net_device,
) -> Option<bindings::netdev_tx_t> {
    let skb = SkBuff::from(UniqueSkBuff::alloc(64, GFP_ATOMIC).ok()?).into_raw();

    // SAFETY: The device is registered, and its queue locked. The packet is given away, unless it
    // is returned.
    unsafe {
        let result = (*(*dev).netdev_ops).ndo_start_xmit?(skb.as_ptr(), dev);
        if result == bindings::netdev_tx::NETDEV_TX_BUSY {
            drop(SkBuff::from_raw(skb));
        }
        Some(result)
    }
}

/// A registered network device with its bus device and interrupts.
pub(in crate::net::device) struct Fixture {
    // In this order: the device goes first, and its interrupts after that.
    pub(in crate::net::device) registration: Option<Registration<Dummy>>,
    pub(in crate::net::device) log: Arc<Log>,
    _parent: faux::Registration,
    pub(in crate::net::device) irqs: [Irq; 3],
}

// SAFETY: The methods that take a shared reference may be called on several CPUs: the device exists
// as long as the fixture, and is made for concurrent use.
unsafe impl Sync for Fixture {}

impl Fixture {
    pub(in crate::net::device) fn new(queues: u32) -> Result<Self> {
        let log = Log::new()?;

        log.queues.store(queues, Relaxed);
        Self::with_log(log)
    }

    /// As [`Self::new`], with the numbers of queues that the log has.
    pub(super) fn with_log(log: Arc<Log>) -> Result<Self> {
        let irqs = [Irq::new()?, Irq::new()?, Irq::new()?];
        let parent = faux::Registration::new(&own_name("rust_net_test")?, None)?;

        log.irq[0].store(irqs[0].0, Relaxed);
        log.irq[1].store(irqs[1].0, Relaxed);

        // SAFETY: The parent exists until the registration has been dropped.
        let bus = unsafe {
            &*core::ptr::from_ref::<device::Device<device::Bound>>(parent.as_ref().as_ref())
        };
        let (info, data) = Dummy::probe(bus, log.clone())?;
        let mut registration = Registration::<Dummy>::new(bus, &info, data)?;
        // IPv6 would send packets of its own.
        let no_addrconf = bindings::netdev_priv_flags_IFF_NO_ADDRCONF;
        // SAFETY: The device is valid, and not registered yet.
        unsafe { bindings::netdev_add_priv_flags(registration.0.as_raw(), no_addrconf) };
        registration.register(&info)?;

        Ok(Self {
            registration: Some(registration),
            log,
            _parent: parent,
            irqs,
        })
    }

    pub(in crate::net::device) fn dev(&self) -> *mut bindings::net_device {
        match &self.registration {
            Some(registration) => registration.0.as_raw(),
            None => core::ptr::null_mut(),
        }
    }

    pub(in crate::net::device) fn data(&self) -> Pin<&Data<'static>> {
        // SAFETY: The device is registered.
        unsafe { ops::inner::<Dummy>(self.dev()) }.data()
    }

    /// Sets the byte queue limit. Returns whether there is one.
    ///
    /// It begins with a single packet, and is kept when a device goes down and up.
    pub(in crate::net::device) fn set_limit(&self, bytes: u32) -> bool {
        #[cfg(CONFIG_BQL)]
        // SAFETY: The queue exists, and no packets are being transmitted.
        unsafe {
            let dql = &raw mut (*bindings::netdev_get_tx_queue(self.dev(), 0)).dql;

            (*dql).min_limit = bytes;
            (*dql).limit = bytes;
            (*dql).adj_limit = (*dql).num_completed.wrapping_add(bytes);
        }
        #[cfg(not(CONFIG_BQL))]
        let _ = bytes;
        cfg!(CONFIG_BQL)
    }

    /// The number of bytes that were queued since the device is up; zero without a limit.
    pub(in crate::net::device) fn queued_bytes(&self) -> u32 {
        #[cfg(CONFIG_BQL)]
        // SAFETY: The queue exists, and no packets are being transmitted.
        let bytes = unsafe {
            (*bindings::netdev_get_tx_queue(self.dev(), 0))
                .dql
                .num_queued
        };
        #[cfg(not(CONFIG_BQL))]
        let bytes = 0;
        bytes
    }

    /// Lets the parent reach all of the memory.
    pub(in crate::net::device) fn allow_dma(&self) -> Result {
        // SAFETY: The parent is valid, and has no mappings yet. The mask is part of it.
        to_result(unsafe {
            let parent = (*self.dev()).dev.parent;
            (*parent).dma_mask = &raw mut (*parent).coherent_dma_mask;
            bindings::dma_set_mask_and_coherent(parent, u64::MAX)
        })
    }

    /// Runs `f` with RTNL held.
    pub(super) fn locked<R>(&self, f: impl FnOnce(*mut bindings::net_device) -> R) -> R {
        // SAFETY: Tests run in process context.
        unsafe { bindings::rtnl_lock() };
        let result = f(self.dev());
        // SAFETY: Locked above.
        unsafe { bindings::rtnl_unlock() };
        result
    }

    pub(in crate::net::device) fn up(&self) -> Result {
        // SAFETY: The device is registered and RTNL is held.
        self.locked(|dev| to_result(unsafe { bindings::dev_open(dev, core::ptr::null_mut()) }))
    }

    pub(in crate::net::device) fn down(&self) {
        // SAFETY: As in `up()`.
        self.locked(|dev| unsafe { bindings::dev_close(dev) });
    }

    /// Runs `f` with bottom halves disabled; softirqs that it raised run before this returns.
    fn bh_disabled(&self, f: impl FnOnce()) {
        // SAFETY: The device has a queue, and `f` does not transmit.
        unsafe {
            let queue = bindings::netdev_get_tx_queue(self.dev(), 0);
            bindings::__netif_tx_lock_bh(queue);
            f();
            bindings::__netif_tx_unlock_bh(queue);
        }
    }

    /// Raises the interrupt of a queue. Its poll functions have returned when this returns.
    pub(in crate::net::device) fn interrupt(&self, index: usize) {
        self.bh_disabled(|| self.irqs[index].raise());
        self.polled();
    }

    /// Waits for the poll functions: softirqs that take too long continue in ksoftirqd.
    pub(in crate::net::device) fn polled(&self) {
        let scheduled = 1 << bindings::NAPI_STATE_SCHED;
        // SAFETY: The device is registered, and the tests alone set it down. Its queues exist.
        let busy = |queue| unsafe {
            let napi = (*bindings::netdev_get_tx_queue(self.dev(), queue)).napi;
            !napi.is_null() && (&raw const (*napi).state).read_volatile() & scheduled != 0
        };
        let queues = self.log.queues.load(Relaxed);

        for _ in 0..10_000 {
            if !(0..queues).any(busy) {
                break;
            }
            fsleep(Delta::from_millis(1));
        }
        // The code that follows the completion of an instance is still part of the softirq.
        // SAFETY: Tests run in process context.
        unsafe { bindings::synchronize_net() };
    }

    pub(in crate::net::device) fn is_stopped(&self) -> bool {
        // SAFETY: The device is registered, and has this queue.
        unsafe { bindings::netif_tx_queue_stopped(bindings::netdev_get_tx_queue(self.dev(), 0)) }
    }

    /// Transmits a packet. Returns the result of `ndo_start_xmit` or the core.
    pub(in crate::net::device) fn transmit(&self) -> Result<i32> {
        Ok(transmit(packet(GFP_KERNEL)?, self.dev()))
    }

    /// Lets the watchdog find a queue that hangs, and waits for the restart.
    pub(in crate::net::device) fn time_out(&self) {
        let dev = self.dev();
        // SAFETY: The device is registered.
        unsafe {
            self.bh_disabled(|| {
                if let Some(timeout) = (*(*dev).netdev_ops).ndo_tx_timeout {
                    timeout(dev, 0);
                }
            });
            bindings::flush_work(ops::inner::<Dummy>(dev).restart.get());
        }
    }

    /// Asks as `ip link` does: a message of netlink aligns the statistics to four bytes.
    pub(in crate::net::device) fn stats(&self) -> bindings::rtnl_link_stats64 {
        const WORDS: usize = size_of::<bindings::rtnl_link_stats64>() / size_of::<u32>();

        #[repr(align(8))]
        struct Message([u32; WORDS + 1]);

        let mut message = Message([0; WORDS + 1]);
        let stats: *mut bindings::rtnl_link_stats64 = message.0.as_mut_ptr().wrapping_add(1).cast();
        // SAFETY: The device is registered, and the message has room for all behind a word.
        unsafe {
            bindings::dev_get_stats(self.dev(), stats);
            stats.read_unaligned()
        }
    }

    /// The device, as drivers see it.
    pub(in crate::net::device) fn device(&self) -> &Device {
        // SAFETY: The device is registered.
        unsafe { Device::from_raw(self.dev()) }
    }

    /// Calls `ndo_start_xmit` for a packet, without the checks of the core.
    pub(in crate::net::device) fn transmit_late(
        &self,
        queue: u16,
    ) -> Result<Option<bindings::netdev_tx_t>> {
        self.transmit_unchecked(UniqueSkBuff::alloc(64, GFP_KERNEL)?.into(), queue)
    }

    /// As [`Self::transmit_late`], with a certain packet.
    pub(in crate::net::device) fn transmit_unchecked(
        &self,
        skb: SkBuff,
        queue: u16,
    ) -> Result<Option<bindings::netdev_tx_t>> {
        let skb = skb.into_raw().as_ptr();
        let mut result = None;

        // SAFETY: The packet is ours, and is given away. No other packet is being transmitted.
        self.bh_disabled(|| unsafe {
            (*skb).queue_mapping = queue;
            result = (*(*self.dev()).netdev_ops)
                .ndo_start_xmit
                .map(|xmit| xmit(skb, self.dev()));
        });
        Ok(result)
    }

    /// Transmits two packets that are mapped to these queues, as the core does which has taken them
    /// from a queueing discipline together. The lock of queue 0 is held if `locked`.
    pub(in crate::net::device) fn transmit_list(&self, queues: [u16; 2], locked: bool) -> Result {
        let bh = BhGuard::new().ok_or(EBUSY)?;
        let dev = self.dev();
        let skbs = [packet(GFP_ATOMIC)?, packet(GFP_ATOMIC)?].map(|skb| skb.into_raw().as_ptr());
        let (mut rest, mut result) = (core::ptr::null_mut(), 0);

        // SAFETY: The packets are ours, and are given away. The device has this queue.
        let mut transmit = || unsafe {
            for (skb, queue) in skbs.into_iter().zip(queues) {
                (*skb).queue_mapping = queue;
                (*skb)
                    .__bindgen_anon_1
                    .__bindgen_anon_1
                    .__bindgen_anon_1
                    .dev = dev;
            }
            (*skbs[0]).__bindgen_anon_1.__bindgen_anon_1.next = skbs[1];
            let queue = bindings::netdev_get_tx_queue(dev, 0);
            rest = bindings::dev_hard_start_xmit(skbs[0], dev, queue, &mut result);
        };
        if locked {
            self.bh_disabled(transmit);
        } else {
            transmit();
        }
        drop(bh);
        if rest.is_null() {
            Ok(())
        } else {
            Err(EBUSY)
        }
    }

    /// Calls the poll function, as netpoll does.
    pub(in crate::net::device) fn poll_once(&self, budget: c_int) -> Option<c_int> {
        let mut done = None;

        // SAFETY: The queue exists and the device is up.
        self.bh_disabled(|| unsafe {
            let napi = (*bindings::netdev_get_tx_queue(self.dev(), 0)).napi;
            done = (*napi).poll.map(|poll| poll(napi, budget));
        });
        done
    }

    pub(in crate::net::device) fn set_mtu(&self, mtu: c_int) -> Result {
        // SAFETY: The device is registered and RTNL is held.
        self.locked(|dev| to_result(unsafe { bindings::dev_set_mtu(dev, mtu) }))
    }

    pub(in crate::net::device) fn set_address(&self, octets: [u8; 6]) -> Result {
        #[repr(C, align(8))]
        struct Storage([u8; 128]);

        let mut address = Storage([0; 128]);
        address.0[0] = 1; // ARPHRD_ETHER, on little endian.
        address.0[2..8].copy_from_slice(&octets);

        self.locked(|dev| {
            // SAFETY: This is as large as a `struct sockaddr_storage`. The device is registered,
            // RTNL is held.
            to_result(unsafe {
                bindings::dev_set_mac_address(dev, (&raw mut address).cast(), core::ptr::null_mut())
            })
        })
    }

    /// Joins a group.
    pub(in crate::net::device) fn join(&self, octets: [u8; 6]) -> Result {
        // SAFETY: The device is registered and RTNL is held.
        self.locked(|dev| to_result(unsafe { bindings::dev_mc_add(dev, octets.as_ptr()) }))
    }

    /// Waits until the driver has got multicast addresses.
    pub(in crate::net::device) fn addresses_come(&self) -> bool {
        for _ in 0..100 {
            if self.log.addresses.load(Relaxed) != 0 {
                return true;
            }
            fsleep(Delta::from_millis(10));
        }
        false
    }

    pub(super) fn ethtool_ops(&self) -> &bindings::ethtool_ops {
        // SAFETY: The device is registered.
        unsafe { &*(*self.dev()).ethtool_ops }
    }

    pub(in crate::net::device) fn count_statistics(&self) -> Option<c_int> {
        self.count_names(bindings::ethtool_stringset_ETH_SS_STATS)
    }

    pub(in crate::net::device) fn count_names(&self, set: u32) -> Option<c_int> {
        self.locked(|dev| {
            let count = self.ethtool_ops().get_sset_count?;
            // SAFETY: The device is registered and RTNL is held.
            Some(unsafe { count(dev, set as c_int) })
        })
    }

    /// The transmit queue that is assigned to a CPU, if any.
    #[cfg(CONFIG_XPS)]
    pub(in crate::net::device) fn xps_queue(&self, cpu: usize) -> Option<u16> {
        // SAFETY: The device is registered; the map does not change. There is one for each traffic
        // class of a CPU, and there are no traffic classes here.
        unsafe {
            let maps = (*self.dev()).xps_maps[bindings::xps_map_type_XPS_CPUS as usize].as_ref()?;
            assert!(maps.num_tc == 1 && cpu < maps.nr_ids as usize);
            let map = *maps.attr_map.as_ptr().add(cpu);
            let map = map.as_ref()?;
            (map.len == 1).then(|| *map.queues.as_ptr())
        }
    }

    /// The number of queue vectors, the maximum, and the number of other interrupts.
    pub(in crate::net::device) fn channels(&self) -> Option<bindings::ethtool_channels> {
        let mut channels = bindings::ethtool_channels::default();

        self.locked(|dev| {
            let get = self.ethtool_ops().get_channels?;
            // SAFETY: The device is registered and RTNL is held.
            unsafe { get(dev, &mut channels) };
            Some(channels)
        })
    }

    pub(in crate::net::device) fn set_channels(&self, count: u32) -> Option<c_int> {
        let mut channels = self.channels()?;

        channels.combined_count = count;
        self.locked(|dev| {
            let set = self.ethtool_ops().set_channels?;
            // SAFETY: The device is registered and RTNL is held.
            Some(unsafe { set(dev, &mut channels) })
        })
    }

    /// The fields of packets of `flow_type` that are hashed.
    pub(in crate::net::device) fn rxfh_fields(&self, flow_type: u32) -> Option<Result<u32>> {
        let mut fields = bindings::ethtool_rxfh_fields {
            flow_type,
            ..Default::default()
        };

        self.locked(|dev| {
            let get = self.ethtool_ops().get_rxfh_fields?;
            // SAFETY: The device is registered and RTNL is held.
            let result = to_result(unsafe { get(dev, &mut fields) });
            Some(result.map(|()| fields.data))
        })
    }

    /// The result, and whether a reason for a refusal goes with it.
    pub(in crate::net::device) fn set_rxfh_fields(
        &self,
        flow_type: u32,
        data: u32,
    ) -> Option<(Result, bool)> {
        let mut extack = bindings::netlink_ext_ack::default();
        let fields = bindings::ethtool_rxfh_fields {
            flow_type,
            data,
            ..Default::default()
        };

        self.locked(|dev| {
            let set = self.ethtool_ops().set_rxfh_fields?;
            // SAFETY: The device is registered and RTNL is held.
            let result = unsafe { set(dev, &fields, &mut extack) };
            Some((to_result(result), !extack._msg.is_null()))
        })
    }

    /// Reads the names of as many statistics as have been counted.
    pub(in crate::net::device) fn statistic_names<const N: usize>(
        &self,
        names: [[u8; NAME]; N],
    ) -> [[u8; NAME]; N] {
        self.names(bindings::ethtool_stringset_ETH_SS_STATS, names)
    }

    /// Reads the names of a set.
    pub(in crate::net::device) fn names<const N: usize>(
        &self,
        set: u32,
        mut names: [[u8; NAME]; N],
    ) -> [[u8; NAME]; N] {
        self.locked(|dev| {
            if let Some(get) = self.ethtool_ops().get_strings {
                // SAFETY: The device is registered, RTNL is held, and tests have room for more than
                // has been counted.
                unsafe { get(dev, set, names.as_mut_ptr().cast::<u8>()) };
            }
        });
        names
    }

    /// Reads `count` statistics.
    pub(in crate::net::device) fn statistic_values<const N: usize>(
        &self,
        count: u32,
        mut values: [u64; N],
    ) -> [u64; N] {
        let mut stats = bindings::ethtool_stats {
            n_stats: count,
            ..Default::default()
        };
        self.locked(|dev| {
            if let Some(get) = self.ethtool_ops().get_ethtool_stats {
                // SAFETY: The device is registered, RTNL is held, and tests have room for more than
                // `count`.
                unsafe { get(dev, &mut stats, values.as_mut_ptr()) };
            }
        });
        values
    }
}
