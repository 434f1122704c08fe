// SPDX-License-Identifier: GPL-2.0
use super::*;

fn message(op: u8, bar: u8, size: u32, address: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![op, bar, 0, 0];
    bytes.extend(size.to_ne_bytes());
    bytes.extend(address.to_ne_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn every_operation_of_the_driver() {
    assert_eq!(
        Command::parse(&message(1, 0, 4, 0x10, &[])),
        Ok(Command::ConfigRead {
            address: 0x10,
            size: 4
        })
    );
    // The driver always sends eight bytes of data here.
    assert_eq!(
        Command::parse(&message(2, 0, 2, 4, &[6, 5, 0, 0, 0, 0, 0, 0])),
        Ok(Command::ConfigWrite {
            address: 4,
            data: &[6, 5]
        })
    );
    assert_eq!(
        Command::parse(&message(3, 3, 7, 1, &[])),
        Ok(Command::Read {
            bar: 3,
            address: 1,
            size: 7
        })
    );
    assert_eq!(
        Command::parse(&message(4, 0, 4, 8, &[1, 2, 3, 4])),
        Ok(Command::Write {
            bar: 0,
            address: 8,
            data: &[1, 2, 3, 4]
        })
    );
    assert_eq!(
        Command::parse(&message(5, 0, 64, 8, &[9])),
        Ok(Command::Fill {
            bar: 0,
            address: 8,
            size: 64,
            value: 9
        })
    );
    assert_eq!(
        Command::parse(&message(9, 0, 8, 0x1000, &[0, 0x10, 2, 0, 0, 0, 0, 1])),
        Ok(Command::Share {
            bar: 0,
            address: 0x1000,
            place: 0x0100_0000_0002_1000
        })
    );
    assert_eq!(
        Command::parse(&message(10, 0, 0, 0x6000, &[])),
        Ok(Command::Unshare {
            bar: 0,
            address: 0x6000
        })
    );
}

#[test]
fn what_is_no_message() {
    assert_eq!(Command::parse(&[]), Err(Malformed::Short(0)));
    assert_eq!(Command::parse(&[1; 15]), Err(Malformed::Short(15)));
    for op in [0, 6, 7, 8, 11, 255] {
        assert_eq!(
            Command::parse(&message(op, 0, 4, 0, &[0; 8])),
            Err(Malformed::Operation(op))
        );
    }
    for size in [0, 3, 5, 16, u32::MAX] {
        for op in [1, 2] {
            assert_eq!(
                Command::parse(&message(op, 0, size, 0, &[0; 8])),
                Err(Malformed::ConfigSize(size))
            );
        }
    }
    assert_eq!(
        Command::parse(&message(4, 0, u32::MAX, 0, &[0; 8])),
        Err(Malformed::Data {
            announced: u32::MAX,
            present: 8
        })
    );
    assert!(Command::parse(&message(5, 0, 4, 0, &[])).is_err());
    assert!(Command::parse(&message(9, 0, 8, 0, &[0; 7])).is_err());
}

#[test]
fn an_interrupt_is_a_write() {
    let bytes = interrupt(0xa_0000, 0x1234_5678);
    assert_eq!((bytes[0], bytes[4]), (7, 4));
    assert_eq!(bytes[8..16], 0xa_0000_u64.to_ne_bytes());
    assert_eq!(bytes[16..], [0x78, 0x56, 0x34, 0x12]);
}
