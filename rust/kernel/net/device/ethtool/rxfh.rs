// SPDX-License-Identifier: GPL-2.0

//! The table, the key and the fields by which received packets are spread over queues.

use super::super::prelude::*;

use core::slice;

/// The hash of Toeplitz, as a bit.
const TOEPLITZ: u8 = 1 << bindings::ETH_RSS_HASH_TOP_BIT;

/// A class of packets that are hashed in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowType {
    /// TCP over IPv4.
    TcpIpv4,
    /// UDP over IPv4.
    UdpIpv4,
    /// Other protocols over IPv4.
    OtherIpv4,
    /// TCP over IPv6.
    TcpIpv6,
    /// UDP over IPv6.
    UdpIpv6,
    /// Other protocols over IPv6.
    OtherIpv6,
}

impl FlowType {
    /// Returns the flows with the `ethtool` number `raw`.
    fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            bindings::TCP_V4_FLOW => Self::TcpIpv4,
            bindings::UDP_V4_FLOW => Self::UdpIpv4,
            bindings::SCTP_V4_FLOW
            | bindings::AH_ESP_V4_FLOW
            | bindings::AH_V4_FLOW
            | bindings::ESP_V4_FLOW
            | bindings::IPV4_FLOW => Self::OtherIpv4,
            bindings::TCP_V6_FLOW => Self::TcpIpv6,
            bindings::UDP_V6_FLOW => Self::UdpIpv6,
            bindings::SCTP_V6_FLOW
            | bindings::AH_ESP_V6_FLOW
            | bindings::AH_V6_FLOW
            | bindings::ESP_V6_FLOW
            | bindings::IPV6_FLOW => Self::OtherIpv6,
            _ => return None,
        })
    }
}

/// The fields of a packet that are hashed to choose its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxfhFields {
    /// Both IP addresses.
    Addresses,
    /// Both IP addresses, and both ports.
    AddressesAndPorts,
}

impl RxfhFields {
    const ADDRESSES: u32 = bindings::RXH_IP_SRC | bindings::RXH_IP_DST;
    const PORTS: u32 = bindings::RXH_L4_B_0_1 | bindings::RXH_L4_B_2_3;

    /// Returns the fields that `raw` stands for in `ethtool`. Other combinations are not supported.
    fn from_raw(raw: u32) -> Option<Self> {
        if raw == Self::ADDRESSES {
            Some(Self::Addresses)
        } else if raw == Self::ADDRESSES | Self::PORTS {
            Some(Self::AddressesAndPorts)
        } else {
            None
        }
    }

    /// Returns the number that stands for the fields in `ethtool`.
    fn to_raw(self) -> u32 {
        match self {
            Self::Addresses => Self::ADDRESSES,
            Self::AddressesAndPorts => Self::ADDRESSES | Self::PORTS,
        }
    }
}

/// A change of the table or the key, see [`RxfhOps::set_rxfh`].
pub struct RxfhChange<'a> {
    /// The queue for each entry of the table, if it changes.
    pub table: Option<&'a [u32]>,
    /// The key, if it changes.
    pub key: Option<&'a [u8]>,
}

impl Device {
    /// Whether users have set the table by which received packets are spread over queues. If not,
    /// the driver spreads them evenly.
    pub fn is_rxfh_configured(&self, _lock: &OpsLocked<'_>) -> bool {
        // SAFETY: By the type invariants, the device is valid. The lock of its operations is held.
        unsafe { bindings::netif_is_rxfh_configured(self.as_raw()) }
    }
}

/// A buffer of the core, if there is one. The core does not always tell its length, which is that
/// of the table or the key.
///
/// # Safety
///
/// `ptr` must be null, or be valid for reads and writes of `len` values during the lifetime, with
/// no other users.
unsafe fn buffer<'a, V>(ptr: *mut V, len: usize) -> Option<&'a mut [V]> {
    if ptr.is_null() {
        return None;
    }
    // SAFETY: By the safety requirements.
    Some(unsafe { slice::from_raw_parts_mut(ptr, len) })
}

/// A driver of a NIC that spreads received packets over queues by a hash, see
/// [`OptionalOps::rxfh`].
pub trait RxfhOps: Driver {
    /// Number of entries of the table by which received packets are spread over queues.
    const RXFH_INDIR_SIZE: usize;

    /// Number of bytes of the key for the hash over received packets.
    const RXFH_KEY_SIZE: usize;

    /// Fills in the table, [`RxfhOps::RXFH_INDIR_SIZE`] queues, and the key of the hash, for
    /// `ethtool -x`.
    fn rxfh<'bound>(
        data: Pin<&Self::Data<'bound>>,
        table: Option<&mut [u32]>,
        key: Option<&mut [u8]>,
        lock: &mut OpsLocked<'bound>,
    );

    /// Changes the table, or the key, or both, for `ethtool -X`.
    ///
    /// The queues in the table exist. If users have set a table,
    /// [`Device::is_rxfh_configured`] says so from then on, and the number of queues does not fall
    /// below those that are in use in it.
    fn set_rxfh<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        change: RxfhChange<'_>,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result;

    /// The header fields by which packets of `flow` are spread over queues, for `ethtool -n`.
    fn rxfh_fields<'bound>(
        data: Pin<&Self::Data<'bound>>,
        flow: FlowType,
        lock: &mut OpsLocked<'bound>,
    ) -> RxfhFields;

    /// Changes the fields that [`RxfhOps::rxfh_fields`] returns, or tells the user why it does not.
    fn set_rxfh_fields<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        flow: FlowType,
        fields: RxfhFields,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result;
}

impl<T: RxfhOps> OptionalOps<T> {
    /// Adds the callbacks of [`RxfhOps`].
    pub const fn rxfh(mut self) -> Self {
        self.ethtool.get_rx_ring_count = Some(Self::get_rx_ring_count);
        self.ethtool.get_rxfh_key_size = Some(Self::get_rxfh_key_size);
        self.ethtool.get_rxfh_indir_size = Some(Self::get_rxfh_indir_size);
        self.ethtool.get_rxfh = Some(Self::get_rxfh);
        self.ethtool.set_rxfh = Some(Self::set_rxfh);
        self.ethtool.get_rxfh_fields = Some(Self::get_rxfh_fields);
        self.ethtool.set_rxfh_fields = Some(Self::set_rxfh_fields);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn get_rx_ring_count(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core calls us for a registered device, and holds its lock.
        let (inner, lock) = unsafe { ops::locked::<T>(dev) };

        // The core divides by this.
        inner.config.get(&lock).channels.into()
    }

    /// # Safety
    ///
    /// Must only be called by the core.
    unsafe extern "C" fn get_rxfh_key_size(_dev: *mut bindings::net_device) -> u32 {
        const { assert!(T::RXFH_KEY_SIZE <= bindings::NETDEV_RSS_KEY_LEN as usize) };

        // CAST: It has just been checked.
        T::RXFH_KEY_SIZE as u32
    }

    /// # Safety
    ///
    /// Must only be called by the core.
    unsafe extern "C" fn get_rxfh_indir_size(_dev: *mut bindings::net_device) -> u32 {
        const { assert!(T::RXFH_INDIR_SIZE <= u16::MAX as usize) };

        // CAST: It has just been checked.
        T::RXFH_INDIR_SIZE as u32
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `param`.
    unsafe extern "C" fn get_rxfh(
        dev: *mut bindings::net_device,
        param: *mut bindings::ethtool_rxfh_param,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, and holds its lock. The buffers of
        // `param` are ours to fill in.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let param = unsafe { &mut *param };
        // SAFETY: As above.
        let table = unsafe { buffer(param.indir, T::RXFH_INDIR_SIZE) };
        // SAFETY: As above.
        let key = unsafe { buffer(param.key, T::RXFH_KEY_SIZE) };

        param.hfunc = TOEPLITZ;
        T::rxfh(inner.data(), table, key, &mut lock);
        0
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `param`.
    unsafe extern "C" fn set_rxfh(
        dev: *mut bindings::net_device,
        param: *mut bindings::ethtool_rxfh_param,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, with valid arguments, and holds
        // its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let (param, extack) = unsafe { (&*param, ExtAck::new(extack)) };

        inner.if_reachable(|| {
            // Zero leaves it as it is.
            if !matches!(param.hfunc, 0 | TOEPLITZ) {
                return Err(extack.refuse(EOPNOTSUPP, c"only Toeplitz hashing is supported"));
            }

            // SAFETY: The buffers are those of the core, which does not use them meanwhile.
            let table = unsafe { buffer(param.indir, T::RXFH_INDIR_SIZE) };
            // SAFETY: As above.
            let key = unsafe { buffer(param.key, T::RXFH_KEY_SIZE) };
            let table = table.map(|table| &*table);
            let queues = u32::from(inner.config.get(&lock).channels);
            if table.is_some_and(|table| table.iter().any(|queue| *queue >= queues)) {
                return Err(extack.refuse(EINVAL, c"queue index out of range"));
            }
            let key = key.map(|key| &*key);
            let change = RxfhChange { table, key };

            T::set_rxfh(inner.data(), inner.dev(), change, &mut lock, &extack)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `fields`.
    unsafe extern "C" fn get_rxfh_fields(
        dev: *mut bindings::net_device,
        fields: *mut bindings::ethtool_rxfh_fields,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, gives us `fields` to fill in, and
            // holds its lock.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let fields = unsafe { &mut *fields };
            let flow = FlowType::from_raw(fields.flow_type).ok_or(EINVAL)?;

            fields.data = T::rxfh_fields(inner.data(), flow, &mut lock).to_raw();
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `fields` and an
    /// `extack` that is valid or null.
    unsafe extern "C" fn set_rxfh_fields(
        dev: *mut bindings::net_device,
        fields: *const bindings::ethtool_rxfh_fields,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, with valid `fields`, and holds
        // its lock. `extack` is valid or null.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let (fields, extack) = unsafe { (&*fields, ExtAck::new(extack)) };

        inner.if_reachable(|| {
            let flow = FlowType::from_raw(fields.flow_type).ok_or_else(|| {
                extack.refuse(EINVAL, c"hashing of this flow type is not supported")
            })?;
            let wanted = RxfhFields::from_raw(fields.data)
                .ok_or_else(|| extack.refuse(EINVAL, c"only sd and sdfn are supported"))?;

            T::set_rxfh_fields(inner.data(), inner.dev(), flow, wanted, &mut lock, &extack)
        })
    }
}
