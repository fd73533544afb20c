//! Addresses as words.

use prism_flash::raw::Address;
use prism_testkit::cases;
use proptest::prelude::*;

fn address() -> impl Strategy<Value = Address> {
    let number = |limit: u32| prop_oneof![0..limit, Just(0), Just(limit - 1)];
    (number(1 << 10), number(1 << 10), number(1 << 20), number(1 << 16))
        .prop_map(|(channel, lun, block, page)| Address { channel, lun, block, page })
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn random_addresses_are_words(a in address(), b in address()) {
        let (of_a, of_b) = (a.to_bits(), b.to_bits());
        prop_assert_eq!(Address::from_bits(of_a), Some(a));
        prop_assert!(of_a < 1 << 56);
        prop_assert_eq!(a.cmp(&b), of_a.cmp(&of_b));
    }

    #[test]
    fn random_words_are_addresses(bits in any::<u64>(), shift in 0..64u32) {
        let bits = bits >> shift;
        match Address::from_bits(bits) {
            Some(address) => prop_assert_eq!(address.to_bits(), bits),
            None => prop_assert!(bits >= 1 << 56),
        }
    }
}

#[test]
fn the_layout_of_words_stays() {
    let at = Address { channel: 1, lun: 2, block: 3, page: 4 };
    assert_eq!(at.to_bits(), 1 << 46 | 2 << 36 | 3 << 16 | 4);
    for wrong in [
        Address { channel: 1 << 10, ..at },
        Address { lun: 1 << 10, ..at },
        Address { block: 1 << 20, ..at },
        Address { page: 1 << 16, ..at },
        at.with_page(u32::MAX),
    ] {
        assert_eq!(wrong.checked_bits(), None, "{wrong}");
    }
}
