// SPDX-License-Identifier: GPL-2.0

//! Tests of modules that see received frames in place of a program.

use super::{
    several::complete,
    *, //
};

use crate::{
    net::{
        device::xdp::Handlers,
        xdp::{
            Action,
            Handler,
            Port, //
        }, //
    },
    sync::{
        atomic::Atomic,
        Arc, //
    }, //
};

const PASS: usize = 0;
const DROP: usize = 1;
const BACK: usize = 2;
/// To the first port, and behind it to others.
const FORWARD: usize = 3;

/// The decision of handlers.
static WANTED: Atomic<usize> = Atomic::new(0);
/// The length of the last frame that they have seen.
static LEN: Atomic<usize> = Atomic::new(0);
/// The length of frames that are received.
static SENT: Atomic<u32> = Atomic::new(60);
/// The descriptor of the next frame.
static NEXT: Atomic<usize> = Atomic::new(0);
/// The number of handlers that are gone.
static GONE: Atomic<u32> = Atomic::new(0);

struct Fake(KVec<Arc<Port>>);

impl Handler for Fake {
    fn handle<'a>(&'a self, frame: &mut [u8]) -> Action<'a> {
        LEN.store(frame.len(), Relaxed);
        frame.fill(9);
        match WANTED.load(Relaxed) {
            PASS => Action::Pass,
            DROP => Action::Drop,
            BACK => Action::SendBack,
            other => self
                .0
                .get(other - FORWARD)
                .map_or(Action::Drop, |port| Action::Forward(port)),
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        GONE.fetch_add(1, Relaxed);
    }
}

fn index(device: &XdpDevice) -> u32 {
    // SAFETY: The device is registered.
    unsafe { (*device.dev()).ifindex as u32 }
}

/// A device that is up, and its handler with ports to devices of these numbers, and one to itself.
/// Later ports are dropped earlier.
struct Handled {
    handlers: Option<Handlers>,
    port: Arc<Port>,
    device: XdpDevice,
}

impl Handled {
    fn new(device: XdpDevice, targets: &[u32]) -> Result<Self> {
        let mut handlers = Handlers::empty()?;
        let port = handlers.port(index(&device))?;
        let mut ports = KVec::new();

        for target in targets {
            ports.push(handlers.port(*target)?, GFP_KERNEL)?;
        }
        ports.push(port.clone(), GFP_KERNEL)?;
        GONE.store(0, Relaxed);
        handlers.attach(&port, Arc::new(Fake(ports), GFP_KERNEL)?)?;
        Ok(Self {
            handlers: Some(handlers),
            port,
            device,
        })
    }

    fn up(targets: &[u32]) -> Result<Self> {
        let device = XdpDevice::new()?;

        device.up()?;
        device.plan.made();
        Self::new(device, targets)
    }
}

/// Has the handler decide on a frame.
fn handle<'p>(
    ring: &mut XdpRing<Wide>,
    program: &Attachment,
    index: usize,
    wanted: usize,
    cx: &'p Poll<'_>,
) -> Result<Verdict<'p, Wide>> {
    ring.write_back(cx, index % 16, [0, done(SENT.load(Relaxed) as u16)]);
    let buff = ring.poll(cx)?.next().ok_or(ENODATA)?.buff.ok_or(EMSGSIZE)?;

    WANTED.store(wanted, Relaxed);
    let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;
    ring.refill(cx)?;
    Ok(verdict)
}

/// Forwards frames to a port of that number.
fn forward(
    ring: &mut XdpRing<Wide>,
    program: &Attachment,
    numbers: core::ops::Range<usize>,
    port: usize,
    cx: &Poll<'_>,
) -> Result {
    for index in numbers {
        let verdict = handle(ring, program, index, FORWARD + port, cx)?;

        check(matches!(verdict, Verdict::Redirected))?;
    }
    Ok(())
}

fn counts(port: &Port) -> [u64; 2] {
    [port.forwarded(), port.dropped()]
}

#[macros::kunit_tests(rust_net_xdp_handler)]
mod cases {
    use super::*;

    #[test]
    fn handlers_write_to_frames_that_pass() -> Result {
        let handled = Handled::up(&[])?;

        handled.device.run(|ring, _, program, cx| {
            ring.write_buffer(cx, 0, 7).ok_or(ENOENT)?;
            let Verdict::Pass(buff) = handle(ring, program, 0, PASS, cx)? else {
                return Err(EACCES);
            };

            check(LEN.load(Relaxed) == 60)?;
            let frame = buff.into_frame();
            // SAFETY: The frame is there, and has been given up.
            let bytes = unsafe {
                bindings::page_address(frame.page.cast())
                    .wrapping_byte_add(256)
                    .cast::<[u8; 60]>()
                    .read()
            };
            check(bytes == [9; 60])?;
            check((frame.headroom, frame.len, frame.metasize) == (256, 60, 0))?;
            // SAFETY: As above.
            drop(unsafe { CpuBuffer::device_buffer_of(&frame) });
            Ok(())
        })
    }

    #[test]
    fn buffers_of_dropped_frames_stay_in_the_ring() -> Result {
        let handled = Handled::up(&[])?;

        handled.device.run(|ring, _, program, cx| {
            let address = ring.write_buffer(cx, 0, 0).ok_or(ENOENT)?;
            let buff = receive(ring, 0, cx)?;

            WANTED.store(DROP, Relaxed);
            let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;
            check(matches!(verdict, Verdict::Dropped))?;
            check(ring.recycled() == 1)?;
            ring.refill(cx)?;
            check(ring.write_buffer(cx, 15, 0) == Some(address))?;
            check((ring.in_use(), ring.missing()) == (15, 0))
        })
    }

    #[test]
    fn frames_are_sent_back() -> Result {
        let handled = Handled::up(&[])?;

        handled.device.run(|ring, _, program, cx| {
            let address = ring.write_buffer(cx, 0, 7).ok_or(ENOENT)?;
            let verdict = handle(ring, program, 0, BACK, cx)?;

            check(matches!(verdict, Verdict::Transmitted(60)))?;
            let (words, page) = ring.tx().frame(ring, cx, 0).ok_or(ENOENT)?;
            check(words == [address, 60 << 32])?;
            check(page[256..316] == [9; 60] && page[316] == 7)?;
            check(ring.take_tx_tail() == Some(1))?;
            for index in 1..15 {
                let verdict = handle(ring, program, index, BACK, cx)?;
                check(matches!(verdict, Verdict::Transmitted(60)))?;
            }
            // There is no room.
            let verdict = handle(ring, program, 15, BACK, cx)?;
            check(matches!(verdict, Verdict::Aborted))?;
            check((ring.tx_in_use(), ring.in_use()) == (15, 15))
        })
    }

    #[test]
    fn forwarded_frames_leave_with_the_poll() -> Result {
        let target = Target::new()?;
        let handled = Handled::up(&[TARGET.load(Relaxed)])?;

        handled.device.run(|ring, _, program, cx| {
            forward(ring, program, 0..3, 0, cx)?;
            // The driver does nothing for them.
            check(TAKEN.load(Relaxed) == 0)
        })?;
        assert_eq!(TAKEN.load(Relaxed), 3);
        handled.device.run(|ring, _, program, cx| {
            forward(ring, program, 3..23, 0, cx)?;
            check(TAKEN.load(Relaxed) == 3 + 16)
        })?;
        assert_eq!(TAKEN.load(Relaxed), 3 + 20);
        handled.device.down();
        assert!(!handled.device.has_pools());
        drop((handled, target));
        Ok(())
    }

    #[test]
    fn frames_for_another_port_leave_with_its_own() -> Result {
        let _target = Target::new()?;
        let handled = Handled::up(&[TARGET.load(Relaxed)])?;

        xmit::link(&handled.device, true);
        handled.device.run(|ring, _, program, cx| {
            forward(ring, program, 0..2, 0, cx)?;
            // To the device itself, from within its receive loop.
            forward(ring, program, 2..5, 1, cx)?;
            check(TAKEN.load(Relaxed) == 2)?;
            forward(ring, program, 5..6, 0, cx)
        })?;
        assert_eq!(TAKEN.load(Relaxed), 3);
        assert_eq!(counts(&handled.port), [3, 0]);
        assert_eq!(xmit::doorbells(&handled.device), [1, 3]);
        Ok(())
    }

    #[test]
    fn a_port_counts_what_its_device_refuses() -> Result {
        let handled = Handled::up(&[])?;

        xmit::link(&handled.device, true);
        handled
            .device
            .run(|ring, _, program, cx| forward(ring, program, 0..17, 0, cx))?;
        // It was given 16, of which it had room for 15, and then one.
        assert_eq!(counts(&handled.port), [15, 2]);
        xmit::link(&handled.device, false);
        handled
            .device
            .run(|ring, _, program, cx| forward(ring, program, 17..18, 0, cx))?;
        assert_eq!(counts(&handled.port), [15, 3]);
        handled.device.down();
        assert!(!handled.device.has_pools());
        Ok(())
    }

    #[test]
    fn frames_to_a_device_that_is_gone_stay_in_the_ring() -> Result {
        let target = Target::new()?;
        let mut handled = Handled::up(&[TARGET.load(Relaxed)])?;
        let handlers = handled.handlers.as_mut().ok_or(ENOENT)?;
        let port = handlers.port(TARGET.load(Relaxed))?;
        let refused = |handled: &Handled| {
            handled.device.run(|ring, _, program, cx| {
                let index = NEXT.fetch_add(1, Relaxed);
                let verdict = handle(ring, program, index, FORWARD, cx)?;

                check(matches!(verdict, Verdict::Aborted))?;
                check((ring.in_use(), TAKEN.load(Relaxed)) == (15, 0))
            })
        };

        assert!(port.mac_address().is_some());
        NEXT.store(0, Relaxed);
        target.set_mtu(100)?;
        // One byte more than there is room for, with a tag.
        SENT.store(119, Relaxed);
        let is_refused = refused(&handled);
        SENT.store(60, Relaxed);
        is_refused?;
        target.down();
        refused(&handled)?;
        drop(target);
        refused(&handled)?;
        assert!(port.mac_address().is_none());
        let fake = Arc::new(Fake(KVec::new()), GFP_KERNEL)?;
        let handlers = handled.handlers.as_mut().ok_or(ENOENT)?;
        assert_eq!(handlers.attach(&port, fake), Err(ENODEV));
        Ok(())
    }

    #[test]
    fn frames_in_several_buffers_are_dropped() -> Result {
        let handled = Handled::up(&[])?;

        assert!(handled.device.is_for_one_buffer()?);
        handled.device.run(|ring, _, program, cx| {
            complete(ring, 0, &[3072, 100], false, cx);
            let buff = ring.poll(cx)?.next().ok_or(ENODATA)?.buff.ok_or(EMSGSIZE)?;
            LEN.store(0, Relaxed);
            let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

            check(matches!(verdict, Verdict::Aborted))?;
            check((LEN.load(Relaxed), ring.in_use()) == (0, 15))
        })
    }

    #[test]
    fn a_device_has_a_program_or_a_handler() -> Result {
        let (device, program) = device(act)?;

        assert_eq!(Handled::new(device, &[]).err(), Some(EBUSY));
        assert_eq!(program.references(), 1);

        let mut handled = Handled::up(&[])?;
        assert_eq!(handled.device.attach(Some(&program)), (Err(EBUSY), true));
        assert_eq!(program.references(), 1);
        let (port, fake) = (handled.port.clone(), Fake(KVec::new()));
        let handlers = handled.handlers.as_mut().ok_or(ENOENT)?;
        assert_eq!(
            handlers.attach(&port, Arc::new(fake, GFP_KERNEL)?),
            Err(EBUSY)
        );
        handled.handlers = None;
        handled.device.attach(Some(&program)).0?;
        assert_eq!(program.references(), 2);
        // The rings are the same.
        assert_eq!(handled.device.plan.made(), [1, 1]);
        Ok(())
    }

    #[test]
    fn a_handler_goes_with_the_module() -> Result {
        let mut handled = Handled::up(&[])?;

        handled
            .device
            .run(|_, _, program, cx| program.program(cx).map(|_| ()).ok_or(ENOENT))?;
        assert_eq!(GONE.load(Relaxed), 0);
        handled.handlers = None;
        assert_eq!(GONE.load(Relaxed), 1);
        handled.device.run(|_, _, program, cx| {
            check(!program.is_in_use() && program.program(cx).is_none())
        })?;
        assert!(handled.port.mac_address().is_none());
        assert!(!handled.device.is_for_one_buffer()?);
        Ok(())
    }

    #[test]
    fn a_device_goes_away_with_a_handler() -> Result {
        let mut handled = Handled::up(&[])?;

        handled.device.device.registration = None;
        assert!(handled.port.mac_address().is_none());
        assert_eq!(GONE.load(Relaxed), 0);
        handled.handlers = None;
        assert_eq!(GONE.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn what_excludes_handlers_is_an_error() -> Result {
        let device = XdpDevice::new()?;

        device.set_mtu(MAX_MTU as c_int + 1)?;
        assert_eq!(Handled::new(device, &[]).err(), Some(EINVAL));
        assert_eq!(GONE.load(Relaxed), 1);

        let device = XdpDevice::new()?;
        device.up()?;
        device.plan.fails.store(1, Relaxed);
        assert_eq!(Handled::new(device, &[]).err(), Some(ENOMEM));
        assert_eq!(GONE.load(Relaxed), 1);

        // Its driver knows no handlers.
        let _target = Target::new()?;
        let mut handlers = Handlers::empty()?;
        let port = handlers.port(TARGET.load(Relaxed))?;
        let fake = Arc::new(Fake(KVec::new()), GFP_KERNEL)?;
        assert_eq!(handlers.attach(&port, fake), Err(EOPNOTSUPP));
        assert_eq!(handlers.port(i32::MAX as u32).err(), Some(ENODEV));
        assert!(handlers.port_by_name(c"lo").is_ok());
        // A port of another module.
        let fake = Arc::new(Fake(KVec::new()), GFP_KERNEL)?;
        assert_eq!(Handlers::empty()?.attach(&port, fake), Err(EINVAL));
        Ok(())
    }
}
