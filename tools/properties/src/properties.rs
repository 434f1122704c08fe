// SPDX-License-Identifier: GPL-2.0

//! The properties.

mod chains;
mod descriptors;
mod eeprom;
mod hashes;
mod headers;
mod modules;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestRunner};
use std::fmt::Debug;

/// Looks for a value without a property, which is one that a closure panics for.
fn check<S: Strategy>(values: S, property: impl Fn(S::Value))
where
    S::Value: Debug,
{
    check_rarely(1, values, property);
}

/// The same, once in so many times: for values that take long.
fn check_rarely<S: Strategy>(rarity: u32, values: S, property: impl Fn(S::Value))
where
    S::Value: Debug,
{
    let config = Config {
        // Files beside the sources: the value is in the message.
        failure_persistence: None,
        ..Config::default()
    };
    let times = config.cases.max(CASES) / rarity;
    let found = TestRunner::new(Config {
        cases: times,
        ..config
    })
    .run(&values, |value| {
        property(value);
        Ok(())
    });
    if let Err(error) = found {
        panic!("{error}");
    }
}

/// More than that if `PROPTEST_CASES` says so.
const CASES: u32 = 20_000;
