//! The few things a journal asks of a disk, behind a trait so that tests can play one that is full or broken.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file a path or a handle means, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The device.
    pub device: u64,
    /// The number of the file on it.
    pub inode: u64,
    /// Its length in bytes.
    pub length: u64,
}

impl Identity {
    /// Whether both are the same file, whatever their lengths.
    pub const fn is_same_file(self, other: Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }
}

/// A disk. What fails must be reported as the system reports it; nothing here tries twice.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Writes at the end of the file, perhaps only a part; says how many bytes.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize>;
    /// Returns when the content and length of the file have reached the disk.
    fn sync(&self, file: &File) -> io::Result<()>;
    /// Returns when the names in a directory have reached the disk.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// Cuts the file to a length.
    fn cut(&self, file: &File, length: u64) -> io::Result<()>;
    /// Which file now stands at a path; `None` if there is none.
    fn at(&self, path: &Path) -> io::Result<Option<Identity>>;
}

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn at(&self, path: &Path) -> io::Result<Option<Identity>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(identity(&metadata))),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The identity in a file's metadata.
pub(super) fn identity(metadata: &fs::Metadata) -> Identity {
    Identity { device: metadata.dev(), inode: metadata.ino(), length: metadata.len() }
}

/// Writes all of it, however many turns the disk takes.
pub(super) fn write_all(disk: &dyn Disk, file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match disk.write(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
