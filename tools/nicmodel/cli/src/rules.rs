// SPDX-License-Identifier: GPL-2.0
//! The rules of the judge as a table.

use std::fmt::Write;

use nicmodel_device::judge::{exceptions, rules::RULES};

/// A driver with known breaches, by its name.
pub fn driver(name: &str) -> Result<&'static exceptions::Driver, String> {
    exceptions::find(name).ok_or_else(|| {
        let known: Vec<_> = exceptions::DRIVERS.iter().map(|one| one.name).collect();
        format!(
            "the judge knows no exceptions of {name}, only of {}",
            known.join(", ")
        )
    })
}

/// All rules, each with the public source that shows it; the number of those that none shows; and
/// the exceptions of each driver.
pub fn table() -> String {
    let mut text = String::new();
    for rule in RULES {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:<20} {:<38} {}", rule.id, rule.source, rule.about);
        let _ = match rule.witness() {
            Some(witness) => writeln!(text, "{:<20} shown by {witness}", ""),
            None => writeln!(text, "{:<20} unverified", ""),
        };
    }
    let unverified = RULES.iter().filter(|rule| rule.witness().is_none());
    let _ = writeln!(
        text,
        "\n{} rules, {} of them unverified",
        RULES.len(),
        unverified.count()
    );
    for driver in exceptions::DRIVERS {
        let _ = writeln!(text, "\nExceptions of {}:", driver.name);
        for one in driver.exceptions {
            let _ = writeln!(text, "{:<20} {:<38} {}", one.rule, one.place, one.why);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_rule() {
        let text = table();
        assert!(RULES.iter().all(|rule| text.contains(rule.id)));
        assert!(text.contains("Exceptions of ixgbe:"));
    }

    #[test]
    fn the_table_counts_what_is_unverified() {
        let text = table();
        let count = |end: &str| text.lines().filter(|line| line.ends_with(end)).count();
        // The last one is the sum.
        let unverified = count(" unverified") - 1;
        let sum = format!("{} rules, {unverified} of them unverified", RULES.len());
        assert!(text.contains(&sum), "{sum}");
        let shown = text.lines().filter(|line| line.contains(" shown by "));
        assert_eq!(shown.count() + unverified, RULES.len());
    }

    #[test]
    fn the_readme_has_every_rule() {
        let text = include_str!("../../README.md");
        for rule in RULES {
            assert!(text.contains(&format!("`{}`", rule.id)), "{}", rule.id);
        }
    }

    #[test]
    fn only_drivers_with_exceptions_can_be_excused() {
        assert!(driver("ixgbe").is_ok());
        assert!(driver("e1000").is_err_and(|text| text.contains("ixgbe")));
    }
}
