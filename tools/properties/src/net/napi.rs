// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::net::napi`.

use crate::prelude::Result;
use crate::sync::Arc;
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;

/// Objects that an instance owns.
pub(crate) trait Attached {
    fn is_of_rx_queue(&self) -> bool;
}

/// An instance: what is attached to it lives as long.
#[derive(Default)]
pub(crate) struct Napi(RefCell<Vec<Box<dyn Any>>>);

impl Napi {
    pub(crate) fn attach<T: Attached + 'static>(&self, object: Arc<T>) -> Result {
        assert!(object.0.is_of_rx_queue());
        self.0.borrow_mut().push(object.0);
        Ok(())
    }
}

/// The instance is being polled.
pub(crate) struct Poll<'a>(pub(crate) PhantomData<&'a Napi>);

/// The instance has stopped.
pub(crate) struct RxStopped<'a>(pub(crate) PhantomData<&'a Napi>);
