// SPDX-License-Identifier: GPL-2.0
//! Stand-ins for attributes of the kernel, which only procedural macros can be.

use proc_macro::TokenStream;

/// KUnit runs the tests of such a module, in the kernel: it is left out.
#[proc_macro_attribute]
pub fn kunit_tests(_: TokenStream, _: TokenStream) -> TokenStream {
    TokenStream::new()
}
