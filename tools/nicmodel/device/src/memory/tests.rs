// SPDX-License-Identifier: GPL-2.0
use super::*;
use vm_memory::MmapRegion;

const PAGE: u64 = 4096;

fn view() -> View {
    let page = |at: u64| (GuestAddress(at), PAGE as usize);
    let map = GuestMemoryMmap::from_ranges(&[page(PAGE), page(2 * PAGE), page(8 * PAGE)]);
    DmaMemory::new(map.expect("memory")).view()
}

#[test]
fn an_access_may_cross_from_one_region_into_the_next() {
    let view = view();
    let at = 2 * PAGE - 3;
    view.write(at, b"across").expect("both are there");
    let mut bytes = [0; 6];
    view.read(at, &mut bytes).expect("both are there");
    assert_eq!(&bytes, b"across");
    view.read(2 * PAGE, &mut bytes[..3]).expect("the second");
    assert_eq!(&bytes[..3], b"oss");
}

#[test]
fn an_access_outside_of_memory_is_an_error_that_names_it() {
    let view = view();
    for address in [0, PAGE - 8, 3 * PAGE, 8 * PAGE - 8, u64::MAX - 7] {
        let error = Err(DmaError { address, length: 8 });
        assert_eq!(view.write(address, &[0; 8]), error);
        assert_eq!(view.read(address, &mut [0; 8]), error);
        assert_eq!(view.store64(address, 0), error);
        assert_eq!(view.load64(address).map(|_| ()), error);
        view.touch(address);
        let error = Err(DmaError {
            address,
            length: 16,
        });
        assert_eq!(view.store_descriptor(address, [0; 2]), error);
        assert_eq!(view.load_descriptors(address, &mut [[0; 2]]), error);
    }
    let at = 9 * PAGE - 4;
    let error = Err(DmaError {
        address: at,
        length: 8,
    });
    assert_eq!(view.write(at, &[0; 8]), error, "only a part is there");
    assert_eq!(view.load64(at).map(|_| ()), error, "only a part is there");
}

#[test]
fn memory_for_reading_only_is_not_written_to() {
    let region = |at: u64, prot| {
        let flags = libc::MAP_ANONYMOUS | libc::MAP_PRIVATE;
        let mapping = MmapRegion::build(None, PAGE as usize, prot, flags).expect("memory");
        GuestRegionMmap::new(mapping, GuestAddress(at)).expect("a region")
    };
    let memory = DmaMemory::default();
    assert!(memory.insert(region(PAGE, libc::PROT_READ | libc::PROT_WRITE)));
    assert!(memory.insert(region(2 * PAGE, libc::PROT_READ)));
    let view = memory.view();
    let at = 2 * PAGE;
    assert_eq!(view.read(at - 4, &mut [0; 8]), Ok(()));
    assert_eq!(view.load64(at), Ok(0));
    for (address, length) in [(at, 8), (at - 4, 8), (at + PAGE - 1, 1)] {
        let error = Err(DmaError { address, length });
        assert_eq!(view.write(address, &vec![1; length]), error);
    }
    assert!(view.store64(at, 1).is_err());
    assert!(view.store32(at, 1).is_err());
    assert!(view.store_descriptor(at, [1; 2]).is_err());
    assert_eq!(view.load64(at - 8), Ok(0), "nor is a part of it");
}

#[test]
fn descriptors_have_their_words_in_order() {
    let view = view();
    view.store_descriptor(PAGE, [1, 2]).expect("in memory");
    view.store_descriptor(PAGE + 16, [3, 4]).expect("in memory");
    let mut found = [[0; 2]; 2];
    view.load_descriptors(PAGE, &mut found).expect("in memory");
    assert_eq!(found, [[1, 2], [3, 4]]);
    assert_eq!(view.load64(PAGE + 24), Ok(4));
}
