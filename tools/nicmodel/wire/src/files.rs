// SPDX-License-Identifier: GPL-2.0
//! The files of the host that requests may name.

use std::path::{Path, PathBuf};

/// Where pcap files may lie.
#[derive(Debug, Clone, Default)]
pub struct Files {
    folder: Option<PathBuf>,
}

impl Files {
    /// Files anywhere on the host; relative paths start at the model's current folder.
    pub fn anywhere() -> Self {
        Self::default()
    }

    /// Files in `folder` and below only; relative paths start there.
    pub fn below(folder: &Path) -> std::io::Result<Self> {
        let folder = folder.canonicalize()?;
        Ok(Self {
            folder: Some(folder),
        })
    }

    /// The file that `path` names. It need not exist, but its folder must.
    pub(crate) fn find(&self, path: &Path) -> Result<PathBuf, String> {
        let Some(folder) = &self.folder else {
            return Ok(path.to_owned());
        };
        let path = folder.join(path);
        // The file itself may be a link out of the folder, and so may its parents.
        let real = path.canonicalize().or_else(|error| {
            let name = path.file_name().ok_or(error)?;
            let parent = path.parent().unwrap_or(folder);
            parent.canonicalize().map(|parent| parent.join(name))
        });
        match real {
            Ok(real) if real.starts_with(folder) => Ok(real),
            // Outside, or its folder is missing: that may only be so from where the model runs.
            Ok(_) => Err(self.outside(&path)),
            Err(_) if !path.starts_with(folder) => Err(self.outside(&path)),
            Err(error) => Err(format!("{}: {error}; {}", path.display(), self.rule())),
        }
    }

    fn outside(&self, path: &Path) -> String {
        format!(
            "{} is not in the folder for files, and what the model writes there may be gone when \
             it ends; {}",
            path.display(),
            self.rule()
        )
    }

    /// Whose paths these are, for a message.
    pub(crate) fn rule(&self) -> String {
        match &self.folder {
            Some(folder) => format!(
                "paths are those of the host on which the model runs, relative to {0} and inside it",
                folder.display()
            ),
            None => {
                "paths are those of the host on which the model runs, relative to the folder in \
                     which it was started"
                    .to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_below_the_folder_are_found() {
        let folder = std::env::temp_dir().join(format!("nicmodel-files-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("in")).expect("made");
        std::os::unix::fs::symlink("/etc", folder.join("out")).expect("made");
        let files = Files::below(&folder).expect("there");
        let real = folder.canonicalize().expect("there");
        for path in ["a.pcap", "in/a.pcap", "in/../a.pcap"] {
            assert!(files.find(Path::new(path)).is_ok(), "{path}");
        }
        assert_eq!(
            files.find(&real.join("in/b.pcap")),
            Ok(real.join("in/b.pcap"))
        );
        for path in ["../a.pcap", "/tmp/a.pcap", "/nowhere/a.pcap", "out/a.pcap"] {
            let error = files.find(Path::new(path)).expect_err(path);
            assert!(
                error.contains("not in the folder") && error.contains("relative to"),
                "{error}"
            );
        }
        let error = files.find(Path::new("none/a.pcap")).expect_err("no folder");
        assert!(error.contains("none/a.pcap"), "{error}");
        std::fs::remove_dir_all(folder).expect("there");
    }

    #[test]
    fn without_a_folder_every_path_is_taken_as_it_is() {
        let path = Path::new("x/../y.pcap");
        assert_eq!(Files::anywhere().find(path), Ok(path.to_owned()));
    }
}
