// SPDX-License-Identifier: GPL-2.0

//! Entry point and callbacks: the thread between QEMU and the counters.

use std::ffi::CStr;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::PoisonError;

use insn_marks::encoding;
use insn_marks::encoding::Mark;
use insn_marks::encoding::TextBuffer;

use crate::api;
use crate::api::ArgumentRegister;
use crate::api::Block;
use crate::api::Chunk;
use crate::api::Counter;
use crate::api::Registers;
use crate::options::Options;
use crate::windows::BlockKey;
use crate::windows::Reading;
use crate::windows::Windows;

impl Reading for Counter {
    fn reading(&self) -> u64 {
        self.sum()
    }
}

/// State that the callbacks share.
struct Plugin {
    options: Options,
    register: OnceLock<Option<ArgumentRegister>>,
    state: Mutex<State>,
}

struct State {
    windows: Windows<Counter>,
    text: TextBuffer,
    chunk: Chunk,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

impl Plugin {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing here leaves the state half changed, so a poisoned lock
        // still guards a good one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, state: &State) {
        let report = serde_json::json!({ "windows": state.windows.finished });
        if let Err(error) = std::fs::write(&self.options.out, report.to_string()) {
            eprintln!(
                "insn-plugin: cannot write {}: {error}",
                self.options.out.display()
            );
        }
    }
}

/// The interface version this plugin was written for.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: i32 = api::VERSION;

/// Called by QEMU when it loads the plugin.
///
/// # Safety
///
/// Only QEMU calls this, with an info block valid for the call and `argc`
/// NUL-terminated strings in `argv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: api::Id,
    info: *const api::Info,
    argc: i32,
    argv: *const *const std::ffi::c_char,
) -> i32 {
    // SAFETY: see above.
    let info = unsafe { &*info };
    if info.target() != "x86_64" || !info.is_system() {
        eprintln!(
            "insn-plugin: only qemu-system-x86_64 is supported, not {}",
            info.target()
        );
        return 1;
    }
    let arguments = (0..usize::try_from(argc).unwrap_or(0)).map(|index| {
        // SAFETY: see above; the strings stay for as long as the plugin does.
        let argument: &'static CStr = unsafe { CStr::from_ptr(*argv.add(index)) };
        argument.to_str().unwrap_or("(not UTF-8)")
    });
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("insn-plugin: {message}");
            return 1;
        }
    };
    let plugin = Plugin {
        options,
        register: OnceLock::new(),
        state: Mutex::new(State {
            windows: Windows::new(),
            text: TextBuffer::default(),
            chunk: Chunk::new(),
        }),
    };
    if PLUGIN.set(plugin).is_err() {
        eprintln!("insn-plugin: loaded twice; give -plugin only once");
        return 1;
    }
    api::on_translation(id, translated);
    api::on_exit(id, exiting);
    0
}

extern "C" fn translated(tb: *mut api::Tb, _: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else {
        return;
    };
    // SAFETY: `tb` is this callback's argument and the block stays in it.
    let mut block = unsafe { Block::from_raw(tb) };
    let insns = block.len();
    let key = BlockKey {
        address: block.address(),
        insns: insns as u32,
    };
    let counter = {
        let State { windows, chunk, .. } = &mut *plugin.state();
        windows.counter(key, || chunk.next())
    };
    block.count_into(counter);
    if plugin.options.calls == Some(key.address) {
        block.on_execution(0, called, Registers::Read, 0);
    }
    for index in 0..insns {
        let bytes = block.bytes::<{ encoding::LENGTH }>(index);
        let callback: api::ExecCallback = match bytes.and_then(|bytes| Mark::decode(&bytes)) {
            Some(Mark::Nibble(nibble)) => {
                block.on_execution(index, nibble_sent, Registers::Untouched, nibble.into());
                continue;
            }
            Some(Mark::On) => opened,
            Some(Mark::Off) => closed,
            None => continue,
        };
        block.on_execution(index, callback, Registers::Untouched, 0);
    }
}

extern "C" fn nibble_sent(_: u32, data: *mut c_void) {
    if let Some(plugin) = PLUGIN.get() {
        plugin.state().text.push(data as usize as u8);
    }
}

extern "C" fn opened(_: u32, _: *mut c_void) {
    if let Some(plugin) = PLUGIN.get() {
        let state = &mut *plugin.state();
        let text = state.text.take();
        state.windows.open(text);
    }
}

extern "C" fn closed(_: u32, _: *mut c_void) {
    if let Some(plugin) = PLUGIN.get() {
        let state = &mut *plugin.state();
        state.windows.finish(true);
        plugin.write(state);
    }
}

extern "C" fn called(_: u32, _: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else {
        return;
    };
    let register = plugin.register.get_or_init(ArgumentRegister::find);
    if let Some(argument) = register.and_then(ArgumentRegister::read) {
        plugin.state().windows.called(argument);
    }
}

extern "C" fn exiting(_: *mut c_void) {
    if let Some(plugin) = PLUGIN.get() {
        let state = &mut *plugin.state();
        state.windows.finish(false);
        plugin.write(state);
    }
}
