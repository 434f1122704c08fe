// SPDX-License-Identifier: GPL-2.0

//! The part of QEMU's plugin interface, version 7, that this plugin uses.
//!
//! Distributions ship no header for it. The functions are resolved against
//! the QEMU executable (and the GLib it is linked with) when it loads the
//! plugin. Everything unsafe about the interface is wrapped here, so that the
//! rest of the plugin is safe code.

use std::ffi::c_void;

/// The interface version that QEMU compares with its own.
pub const VERSION: i32 = 7;

/// Identifies this plugin towards QEMU.
pub type Id = u64;

/// QEMU's description of the machine for a plugin; only the head is declared.
#[repr(C)]
pub struct Info {
    target_name: *const std::ffi::c_char,
    version_min: i32,
    version_cur: i32,
    system_emulation: bool,
}

impl Info {
    /// Name of the emulated architecture.
    pub fn target(&self) -> &str {
        // SAFETY: QEMU hands a NUL-terminated string that outlives `self`.
        let name = unsafe { std::ffi::CStr::from_ptr(self.target_name) };
        name.to_str().unwrap_or("unknown")
    }

    /// Whether a whole machine is emulated, as opposed to one program.
    pub fn is_system(&self) -> bool {
        self.system_emulation
    }
}

/// A translation block; exists only while it is being translated.
#[repr(C)]
pub struct Tb {
    opaque: [u8; 0],
}

/// An instruction of a translation block; lives as long as that.
#[repr(C)]
pub struct Insn {
    opaque: [u8; 0],
}

/// Storage with one element per virtual CPU.
#[repr(C)]
pub struct Scoreboard {
    opaque: [u8; 0],
}

/// One 64-bit counter per virtual CPU, at an offset in a scoreboard element.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Counter {
    score: *mut Scoreboard,
    offset: usize,
}

// SAFETY: a scoreboard is never freed, and QEMU's functions on it take any
// thread; sums read while a CPU counts are merely a little old.
unsafe impl Send for Counter {}

/// A callback that QEMU makes when an instruction is executed.
pub type ExecCallback = extern "C" fn(cpu: u32, data: *mut c_void);

/// A callback that QEMU makes for each block that it translates.
pub type TranslateCallback = extern "C" fn(tb: *mut Tb, data: *mut c_void);

/// Whether a callback looks at the registers of its CPU.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum Registers {
    /// It does not.
    Untouched = 0,
    /// It reads them.
    Read = 1,
}

const INLINE_ADD: u32 = 0;

#[repr(C)]
struct RegisterDescriptor {
    handle: *mut c_void,
    name: *const std::ffi::c_char,
    feature: *const std::ffi::c_char,
    is_readonly: bool,
}

#[repr(C)]
struct Array {
    data: *mut u8,
    len: u32,
}

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, cb: TranslateCallback, data: *mut c_void);
    fn qemu_plugin_register_atexit_cb(id: Id, cb: extern "C" fn(*mut c_void), data: *mut c_void);
    fn qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
        tb: *mut Tb,
        op: u32,
        entry: Counter,
        value: u64,
    );
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut Insn,
        cb: ExecCallback,
        flags: Registers,
        data: *mut c_void,
    );
    fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    fn qemu_plugin_tb_vaddr(tb: *const Tb) -> u64;
    fn qemu_plugin_tb_get_insn(tb: *const Tb, index: usize) -> *mut Insn;
    fn qemu_plugin_insn_data(insn: *const Insn, to: *mut c_void, len: usize) -> usize;
    fn qemu_plugin_insn_size(insn: *const Insn) -> usize;
    fn qemu_plugin_scoreboard_new(element_size: usize) -> *mut Scoreboard;
    fn qemu_plugin_u64_sum(entry: Counter) -> u64;
    fn qemu_plugin_get_registers() -> *mut Array;
    fn qemu_plugin_read_register(handle: *mut c_void, buffer: *mut Array) -> bool;

    fn g_byte_array_new() -> *mut Array;
    fn g_byte_array_free(array: *mut Array, free_data: i32) -> *mut u8;
    fn g_array_get_element_size(array: *mut Array) -> u32;
    fn g_array_free(array: *mut Array, free_data: i32) -> *mut u8;
}

/// Has `cb` called for every block that is translated from now on.
pub fn on_translation(id: Id, cb: TranslateCallback) {
    // SAFETY: `cb` has the signature of this interface version and is a
    // function of this library, which is never unloaded.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, cb, std::ptr::null_mut()) }
}

/// Has `cb` called when QEMU ends.
pub fn on_exit(id: Id, cb: extern "C" fn(*mut c_void)) {
    // SAFETY: as in `on_translation`.
    unsafe { qemu_plugin_register_atexit_cb(id, cb, std::ptr::null_mut()) }
}

/// A block under translation.
pub struct Block<'a> {
    tb: &'a mut Tb,
}

impl<'a> Block<'a> {
    /// Wraps the argument of a [`TranslateCallback`].
    ///
    /// # Safety
    ///
    /// `tb` must be that argument, and `'a` must end with the callback.
    pub unsafe fn from_raw(tb: *mut Tb) -> Self {
        // SAFETY: by the requirement above QEMU keeps the block until then.
        let tb = unsafe { &mut *tb };
        Block { tb }
    }

    /// Virtual address of the first instruction.
    pub fn address(&self) -> u64 {
        // SAFETY: the block is valid, see `from_raw`.
        unsafe { qemu_plugin_tb_vaddr(self.tb) }
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        // SAFETY: the block is valid, see `from_raw`.
        unsafe { qemu_plugin_tb_n_insns(self.tb) }
    }

    fn insn(&self, index: usize) -> Option<*mut Insn> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: the block is valid and the index inside it.
        let insn = unsafe { qemu_plugin_tb_get_insn(self.tb, index) };
        (!insn.is_null()).then_some(insn)
    }

    /// Copies the bytes of instruction `index` if it has just `N` of them.
    pub fn bytes<const N: usize>(&self, index: usize) -> Option<[u8; N]> {
        let insn = self.insn(index)?;
        let mut bytes = [0; N];
        // SAFETY: `insn` belongs to the valid block, and `bytes` has N bytes.
        let copied = unsafe {
            if qemu_plugin_insn_size(insn) != N {
                return None;
            }
            qemu_plugin_insn_data(insn, bytes.as_mut_ptr().cast(), N)
        };
        (copied == N).then_some(bytes)
    }

    /// Counts the executions of this block in `counter`.
    pub fn count_into(&mut self, counter: Counter) {
        // SAFETY: the block is valid, and a `Counter` lies in a scoreboard.
        unsafe {
            qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(self.tb, INLINE_ADD, counter, 1)
        }
    }

    /// Has `cb` called with `data` before each execution of instruction `index`.
    pub fn on_execution(&mut self, index: usize, cb: ExecCallback, flags: Registers, data: usize) {
        if let Some(insn) = self.insn(index) {
            // SAFETY: `insn` belongs to the valid block; `cb` gets `data` as a
            // number, so there is nothing that could dangle.
            unsafe { qemu_plugin_register_vcpu_insn_exec_cb(insn, cb, flags, data as *mut c_void) }
        }
    }
}

/// A scoreboard of `Chunk::LENGTH` counters, zero at first. It is never freed:
/// translated blocks refer to it until QEMU ends.
pub struct Chunk {
    score: *mut Scoreboard,
    used: usize,
}

// SAFETY: as for `Counter`.
unsafe impl Send for Chunk {}

impl Chunk {
    /// Counters in a chunk. QEMU keeps at least 16 CPUs' worth of each.
    const LENGTH: usize = 1024;

    /// A chunk of which nothing is used yet.
    pub fn new() -> Chunk {
        // SAFETY: takes a size, returns memory that belongs to us.
        let score = unsafe { qemu_plugin_scoreboard_new(Self::LENGTH * size_of::<u64>()) };
        Chunk { score, used: 0 }
    }

    /// An unused counter; begins another chunk when this one is used up.
    pub fn next(&mut self) -> Counter {
        if self.used == Self::LENGTH {
            *self = Chunk::new();
        }
        let offset = self.used * size_of::<u64>();
        self.used += 1;
        Counter {
            score: self.score,
            offset,
        }
    }
}

impl Counter {
    /// Sum over all CPUs.
    pub fn sum(self) -> u64 {
        // SAFETY: the scoreboard is never freed.
        unsafe { qemu_plugin_u64_sum(self) }
    }
}

/// The handle of the register that carries the second argument of a call.
#[derive(Clone, Copy)]
pub struct ArgumentRegister(usize);

impl ArgumentRegister {
    /// Looks the register up; only in a callback of a virtual CPU.
    pub fn find() -> Option<ArgumentRegister> {
        // SAFETY: called on a CPU's thread, as QEMU asks for.
        let array = unsafe { qemu_plugin_get_registers() };
        if array.is_null() {
            return None;
        }
        let mut found = None;
        // SAFETY: the array is ours now. Its element size is compared with
        // our idea of an element before one is read, and names are strings
        // that QEMU never frees.
        unsafe {
            if g_array_get_element_size(array) as usize == size_of::<RegisterDescriptor>() {
                let elements = (*array).data.cast::<RegisterDescriptor>();
                found = (0..(*array).len as usize)
                    .map(|index| &*elements.add(index))
                    .find(|one| std::ffi::CStr::from_ptr(one.name) == c"rsi")
                    .map(|one| ArgumentRegister(one.handle as usize));
            }
            g_array_free(array, 1);
        }
        found
    }

    /// Reads the argument; only in a callback that was registered with
    /// [`Registers::Read`] on the first instruction of a function.
    pub fn read(self) -> Option<u64> {
        // SAFETY: plain allocation.
        let buffer = unsafe { g_byte_array_new() };
        // SAFETY: the handle comes from `find`, the buffer from above.
        let read = unsafe { qemu_plugin_read_register(self.0 as *mut c_void, buffer) };
        let argument = if read { first_u64(buffer) } else { None };
        // SAFETY: allocated above, not used any more.
        unsafe { g_byte_array_free(buffer, 1) };
        argument
    }
}

fn first_u64(buffer: *mut Array) -> Option<u64> {
    // SAFETY: GLib keeps `len` bytes at `data`.
    let bytes = unsafe {
        if (*buffer).data.is_null() || ((*buffer).len as usize) < size_of::<u64>() {
            return None;
        }
        *(*buffer).data.cast::<[u8; 8]>()
    };
    Some(u64::from_le_bytes(bytes))
}
