// SPDX-License-Identifier: GPL-2.0
//! The files and devices of the host that requests may name: guests send them, too.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::pcap::is_capture;

/// A file that is played is read whole.
const LARGEST: u64 = 256 << 20;

/// The folder of capture files, and the TAP devices.
#[derive(Debug, Default)]
pub struct Files {
    path: PathBuf,
    folder: Option<File>,
    taps: Vec<String>,
}

impl Files {
    /// Files in `folder` and below, which is made if it is not there, and the devices `taps`.
    pub fn below(folder: &Path, taps: Vec<String>) -> io::Result<Self> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let path = folder.canonicalize()?;
        let folder = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY)
            .open(&path)?;
        Ok(Self {
            path,
            folder: Some(folder),
            taps,
        })
    }

    /// All of a file that is to be played.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let read = || {
            let mut data = Vec::new();
            let file = self.open(path, libc::O_RDONLY)?;
            match file.take(LARGEST + 1).read_to_end(&mut data)? as u64 {
                0..=LARGEST => Ok(data),
                _ => Err(io::Error::other(format!(
                    "it has more than {LARGEST} bytes"
                ))),
            }
        };
        read().map_err(|error| self.explain("read", path, &error))
    }

    /// A new file, or one that held a capture and is empty now.
    pub(crate) fn write(&self, path: &Path) -> Result<File, String> {
        let write = || {
            let mut file = self.open(path, libc::O_RDWR | libc::O_CREAT)?;
            let mut begin = Vec::new();
            if file.by_ref().take(4).read_to_end(&mut begin)? != 0 && !is_capture(&begin) {
                return Err(io::Error::other("it exists and is no pcap file"));
            }
            file.set_len(0)?;
            file.rewind()?;
            Ok(file)
        };
        write().map_err(|error| self.explain("write", path, &error))
    }

    /// Opens a regular file; neither a link nor a pipe without another end stops it.
    fn open(&self, path: &Path, flags: libc::c_int) -> io::Result<File> {
        let none = || io::Error::other("the model has no folder for files");
        let folder = self.folder.as_ref().ok_or_else(none)?;
        let inside = path.strip_prefix(&self.path).unwrap_or(path);
        let name = CString::new(inside.as_os_str().as_bytes())?;
        // SAFETY: the structure consists of integers.
        let mut how: libc::open_how = unsafe { std::mem::zeroed() };
        how.flags = (flags | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK) as u64;
        how.mode = if flags & libc::O_CREAT != 0 { 0o600 } else { 0 };
        how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS;
        // SAFETY: the descriptor is open, and the name and the structure live during the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_openat2,
                folder.as_raw_fd(),
                name.as_ptr(),
                &raw const how,
                size_of_val(&how),
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above made this descriptor, and nothing else uses it.
        let file = unsafe { File::from_raw_fd(fd as libc::c_int) };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        Ok(file)
    }

    fn explain(&self, verb: &str, path: &Path, error: &io::Error) -> String {
        format!(
            "cannot {verb} {}: {error}; paths are relative to {} on the host of the model, inside \
             of it and without links",
            path.display(),
            self.path.display()
        )
    }

    /// Refuses a device that was not named at the start.
    pub(crate) fn check_tap(&self, name: &str) -> Result<(), String> {
        if self.taps.iter().any(|tap| tap == name) {
            return Ok(());
        }
        Err(format!(
            "path: the model may not attach to device {name:?}; it was started with --tap for {:?}",
            self.taps
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder of captures beside a precious file, and what tells them apart.
    fn place(name: &str) -> (PathBuf, Files) {
        let top = std::env::temp_dir().join(format!("nicmodel-{name}-{}", std::process::id()));
        let folder = top.join("captures");
        let files = Files::below(&folder, vec!["nic0".to_owned()]).unwrap();
        std::fs::create_dir(folder.join("in")).unwrap();
        std::fs::write(top.join("precious"), "precious").unwrap();
        (top, files)
    }

    #[test]
    fn only_files_below_the_folder_are_written() {
        let (top, files) = place("below");
        let folder = top.join("captures");
        symlink(&top, folder.join("out")).unwrap();
        symlink("../precious", folder.join("link")).unwrap();
        symlink("in", folder.join("inner")).unwrap();
        for path in ["a.pcap", "in/a.pcap", "in/../a.pcap"] {
            files.write(Path::new(path)).expect(path);
            assert!(folder.join(path).exists(), "{path}");
        }
        files.write(&files.path.join("in/b.pcap")).unwrap();
        for path in [
            "../precious",
            "/etc/passwd",
            "out/precious",
            "link",
            "inner/a.pcap",
            "in",
            "none/a.pcap",
            "",
            "\0",
        ] {
            for error in [
                files.write(Path::new(path)).expect_err(path),
                files.read(Path::new(path)).expect_err(path),
            ] {
                assert!(error.contains("are relative to"), "{error}");
            }
        }
        assert_eq!(
            std::fs::read_to_string(top.join("precious")).unwrap(),
            "precious"
        );
        std::fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn only_a_capture_is_written_over() {
        let (top, files) = place("over");
        let other = top.join("captures/notes");
        std::fs::write(&other, "notes").unwrap();
        let error = files.write(Path::new("notes")).expect_err("no capture");
        assert!(error.contains("is no pcap file"), "{error}");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "notes");
        for begin in [b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\xc3\xd4"] {
            std::fs::write(&other, [&begin[..], b"frames"].concat()).unwrap();
            files.write(Path::new("notes")).unwrap();
            assert_eq!(std::fs::read(&other).unwrap(), b"");
        }
        std::fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn what_is_no_file_or_has_no_end_is_refused_at_once() {
        let (top, files) = place("kinds");
        let folder = top.join("captures");
        let pipe = CString::new(folder.join("pipe").as_os_str().as_bytes()).unwrap();
        // SAFETY: the name is a string with a terminator that lives during the call.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        File::create(folder.join("large"))
            .unwrap()
            .set_len(LARGEST + 1)
            .unwrap();
        for (path, word) in [("pipe", "no regular file"), ("large", "more than")] {
            let error = files.read(Path::new(path)).expect_err(path);
            assert!(error.contains(word), "{error}");
        }
        assert!(files.write(Path::new("pipe")).is_err());
        let devices = Files::below(Path::new("/dev"), Vec::new()).unwrap();
        let error = devices.read(Path::new("zero")).expect_err("no end");
        assert!(error.contains("no regular file"), "{error}");
        std::fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn only_devices_that_were_named_are_attached() {
        let (top, files) = place("taps");
        assert_eq!(files.check_tap("nic0"), Ok(()));
        assert!(files.check_tap("eth0").unwrap_err().contains("nic0"));
        std::fs::remove_dir_all(top).unwrap();
    }
}
