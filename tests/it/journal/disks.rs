//! Disks that misbehave, for the tests beside.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tiroll::journal::{Disk, Identity, RealDisk};

/// What happens at the next calls to a disk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Play {
    /// It works.
    Works,
    /// A write takes only so many bytes; other calls work.
    Short(usize),
    /// It fails.
    Fails(io::ErrorKind),
    /// A write takes so many bytes and then says that it failed.
    Lies(usize, io::ErrorKind),
}

/// A real disk that follows a script, call by call; after its end everything works.
#[derive(Debug, Default)]
pub(super) struct Scripted {
    writes: Mutex<VecDeque<Play>>,
    syncs: Mutex<VecDeque<Play>>,
    cuts: Mutex<VecDeque<Play>>,
}

fn next(script: &Mutex<VecDeque<Play>>) -> Play {
    script.lock().unwrap().pop_front().unwrap_or(Play::Works)
}

impl Scripted {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    pub(super) fn writes(&self, plays: impl IntoIterator<Item = Play>) {
        self.writes.lock().unwrap().extend(plays);
    }

    pub(super) fn syncs(&self, plays: impl IntoIterator<Item = Play>) {
        self.syncs.lock().unwrap().extend(plays);
    }

    pub(super) fn cuts(&self, plays: impl IntoIterator<Item = Play>) {
        self.cuts.lock().unwrap().extend(plays);
    }
}

impl Disk for Scripted {
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        match next(&self.writes) {
            Play::Works => RealDisk.write(file, bytes),
            Play::Short(most) => RealDisk.write(file, &bytes[..most.min(bytes.len())]),
            Play::Fails(kind) => Err(kind.into()),
            Play::Lies(most, kind) => {
                RealDisk.write(file, &bytes[..most.min(bytes.len())])?;
                Err(kind.into())
            }
        }
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        match next(&self.syncs) {
            Play::Fails(kind) | Play::Lies(_, kind) => Err(kind.into()),
            Play::Works | Play::Short(_) => RealDisk.sync(file),
        }
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(path)
    }

    fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        match next(&self.cuts) {
            Play::Fails(kind) | Play::Lies(_, kind) => Err(kind.into()),
            Play::Works | Play::Short(_) => RealDisk.cut(file, length),
        }
    }

    fn at(&self, path: &Path) -> io::Result<Option<Identity>> {
        RealDisk.at(path)
    }
}

/// A disk whose every write after the first goes to the system's own full device.
#[derive(Debug)]
pub(super) struct Full {
    pub(super) is_full: Mutex<bool>,
    pub(super) device: File,
}

impl Disk for Full {
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        if *self.is_full.lock().unwrap() { RealDisk.write(&self.device, bytes) } else { RealDisk.write(file, bytes) }
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        RealDisk.sync(file)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(path)
    }

    fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        RealDisk.cut(file, length)
    }

    fn at(&self, path: &Path) -> io::Result<Option<Identity>> {
        RealDisk.at(path)
    }
}

/// A disk that never waits for the platter, for tests that write very often.
#[derive(Debug)]
pub(super) struct Unsynced;

impl Disk for Unsynced {
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        RealDisk.write(file, bytes)
    }

    fn sync(&self, _: &File) -> io::Result<()> {
        Ok(())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        RealDisk.cut(file, length)
    }

    fn at(&self, path: &Path) -> io::Result<Option<Identity>> {
        RealDisk.at(path)
    }
}
