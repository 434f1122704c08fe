// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `crate::sync` of the kernel's sources.

pub(crate) use crate::kernel::llist;
pub(crate) use loom::sync::Arc;

pub(crate) mod atomic {
    //! The kernel's atomics, made of those of loom.

    use loom::sync::atomic::{AtomicI32, AtomicIsize, AtomicPtr, AtomicU32, AtomicU64, Ordering};

    /// An ordering, as a type.
    pub(crate) trait Marker {
        const SUCCESS: Ordering;
    }

    macro_rules! marker {
        ($($name:ident = $ordering:ident),*) => {$(
            pub(crate) struct $name;

            impl Marker for $name {
                const SUCCESS: Ordering = Ordering::$ordering;
            }
        )*};
    }

    // A full barrier orders more than that, which the litmus tests check.
    marker!(
        Relaxed = Relaxed,
        Acquire = Acquire,
        Release = Release,
        Full = AcqRel
    );

    /// A type that has atomics.
    pub(crate) trait Value: Sized {
        type Cell: Cell<Self>;
    }

    /// The operations on an atomic.
    pub(crate) trait Cell<T> {
        fn new(value: T) -> Self;
        fn load(&self, ordering: Ordering) -> T;
        fn store(&self, value: T, ordering: Ordering);
        fn swap(&self, value: T, ordering: Ordering) -> T;
        fn compare_exchange(&self, old: T, new: T, ordering: Ordering) -> Result<T, T>;
    }

    macro_rules! value {
        ($({$($generics:tt)*} $type:ty, $cell:ty;)*) => {$(
            impl<$($generics)*> Value for $type {
                type Cell = $cell;
            }

            impl<$($generics)*> Cell<$type> for $cell {
                fn new(value: $type) -> Self {
                    <$cell>::new(value)
                }

                fn load(&self, ordering: Ordering) -> $type {
                    self.load(ordering)
                }

                fn store(&self, value: $type, ordering: Ordering) {
                    self.store(value, ordering);
                }

                fn swap(&self, value: $type, ordering: Ordering) -> $type {
                    self.swap(value, ordering)
                }

                fn compare_exchange(
                    &self,
                    old: $type,
                    new: $type,
                    ordering: Ordering,
                ) -> Result<$type, $type> {
                    // If it fails, it orders nothing.
                    self.compare_exchange(old, new, ordering, Ordering::Relaxed)
                }
            }
        )*};
    }

    value! {
        {} i32, AtomicI32;
        {} u32, AtomicU32;
        {} u64, AtomicU64;
        {} isize, AtomicIsize;
        {T} *mut T, AtomicPtr<T>;
    }

    pub(crate) struct Atomic<T: Value>(T::Cell);

    // The last argument of an operation is only there for its type, as in the kernel.
    impl<T: Value> Atomic<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(T::Cell::new(value))
        }

        pub(crate) fn load<O: Marker>(&self, _: O) -> T {
            self.0.load(O::SUCCESS)
        }

        pub(crate) fn store<O: Marker>(&self, value: T, _: O) {
            self.0.store(value, O::SUCCESS);
        }

        pub(crate) fn xchg<O: Marker>(&self, new: T, _: O) -> T {
            self.0.swap(new, O::SUCCESS)
        }

        pub(crate) fn cmpxchg<O: Marker>(&self, old: T, new: T, _: O) -> Result<T, T> {
            self.0.compare_exchange(old, new, O::SUCCESS)
        }
    }

    impl Atomic<isize> {
        pub(crate) fn fetch_add<O: Marker>(&self, more: isize, _: O) -> isize {
            self.0.fetch_add(more, O::SUCCESS)
        }
    }
}
