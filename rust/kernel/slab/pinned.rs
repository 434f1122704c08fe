// SPDX-License-Identifier: GPL-2.0

//! Batches of objects with pinned values.

use super::{
    Batch,
    Cache,
    Object, //
};
use crate::{
    alloc::Flags,
    prelude::*, //
};

/// Up to `N` objects of a cache whose values do not move.
///
/// This is a [`Batch`] for values that are initialised in place and pinned, such as those that
/// contain locks or list heads.
///
/// # Invariants
///
/// No value of the batch is moved before it is dropped.
///
/// # Examples
///
/// ```
/// use kernel::{
///     new_spinlock,
///     slab::{
///         Cache,
///         PinnedBatch, //
///     },
///     sync::SpinLock, //
/// };
///
/// #[pin_data]
/// struct Account {
///     #[pin]
///     balance: SpinLock<usize>,
/// }
///
/// let cache = Cache::<Account>::new(c"rust_doc_account", 8)?;
/// let mut batch = PinnedBatch::<_, 8>::new(&cache);
/// batch.alloc(8, GFP_KERNEL, |i| pin_init!(Account { balance <- new_spinlock!(i) }))?;
///
/// let account = batch.pop().ok_or(EINVAL)?;
/// *account.balance.lock() += 10;
/// assert_eq!(*account.balance.lock(), 17);
/// assert!(batch.push(account).is_ok());
/// # Ok::<(), Error>(())
/// ```
pub struct PinnedBatch<'c, T, const N: usize>(Batch<'c, T, N>);

impl<'c, T, const N: usize> PinnedBatch<'c, T, N> {
    /// Returns an empty batch.
    #[inline]
    pub fn new(cache: &'c Cache<T>) -> Self {
        // INVARIANT: There are no values.
        Self(Batch::new(cache))
    }

    /// Returns the number of objects.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Checks whether there are no objects.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of objects that can still be added.
    #[inline]
    pub fn room(&self) -> usize {
        self.0.room()
    }

    /// Adds `count` new objects, each initialised in place by what `init` returns.
    ///
    /// `init` is called with numbers from 0 on. Either all objects are added, or none: if an
    /// initialiser fails, the values that were initialised before are dropped and the memory is
    /// freed.
    ///
    /// # Errors
    ///
    /// Errors of an initialiser; [`ENOSPC`] if there is no room for `count` more; [`ENOMEM`] if
    /// there is no memory.
    #[inline]
    pub fn alloc<I, E>(
        &mut self,
        count: usize,
        flags: Flags,
        init: impl FnMut(usize) -> I,
    ) -> Result
    where
        I: PinInit<T, E>,
        Error: From<E>,
    {
        // SAFETY: By the type invariants, the values do not move.
        unsafe { self.0.fill_with(count, flags, init) }
    }

    /// Adds an object, or gives it back if there is no room or it comes from another cache.
    #[inline]
    pub fn push(&mut self, object: Pin<Object<'c, T>>) -> Result<(), Pin<Object<'c, T>>> {
        // SAFETY: The value does not move: neither a batch nor an `Object` contains it, and by the
        // type invariants the batch does not move it.
        self.0
            .push(unsafe { Pin::into_inner_unchecked(object) })
            .map_err(Object::into_pin)
    }

    /// Adds an object to be freed later.
    ///
    /// See [`Batch::gather`].
    #[inline]
    pub fn gather(&mut self, object: Pin<Object<'c, T>>) {
        // SAFETY: As in `push`.
        self.0.gather(unsafe { Pin::into_inner_unchecked(object) });
    }

    /// Moves objects from the end of another batch into this one, as many as fit.
    ///
    /// See [`Batch::append`].
    #[inline]
    pub fn append<const M: usize>(&mut self, other: &mut PinnedBatch<'c, T, M>) -> usize {
        // The objects move, the values do not.
        self.0.append(&mut other.0)
    }

    /// Takes out the object that was added last.
    #[inline]
    pub fn pop(&mut self) -> Option<Pin<Object<'c, T>>> {
        self.0.pop().map(Object::into_pin)
    }

    /// Returns an iterator over the values.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Returns an iterator over the values that allows changing them, but not moving them.
    #[inline]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = Pin<&mut T>> {
        // SAFETY: By the type invariants, the values do not move before they are dropped.
        self.0
            .iter_mut()
            .map(|value| unsafe { Pin::new_unchecked(value) })
    }

    /// Drops all values and frees their memory.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
