//! The socket in a rollout's directory: for its owner alone, replaced where a killed program left one, removed at the end.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// What the directory of a socket with a short path is called.
const SHORT: &str = "tiroll-";

/// A socket that is listened on.
pub(super) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// The user that it belongs to.
    owner: u32,
}

impl Socket {
    /// Listens at this path. Whoever calls holds the rollout's lock: a socket that is there is of a program that died.
    ///
    /// A system takes about a hundred bytes of path. Where there are more, the socket lies in a directory of its own
    /// under the one for temporary files, and the path is a link to it.
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        remove(path)?;
        let (listener, at) = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => bind_elsewhere(path)?,
            other => (other?, path.to_path_buf()),
        };
        let path = path.to_path_buf();
        // From here on whatever fails takes the socket with it.
        let mut socket = Self { listener, path, owner: 0 };
        fs::set_permissions(&at, Permissions::from_mode(0o600))?;
        socket.owner = fs::symlink_metadata(&at)?.uid();
        Ok(socket)
    }

    /// The next one who connects; somebody of another user is turned away.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.listener.accept().await?;
        let peer = stream.peer_cred()?.uid();
        if peer != self.owner && peer != 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(stream)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Left behind it is replaced by the next program that goes on with the rollout.
        let _ = remove(&self.path);
    }
}

/// Connects to the socket of a rollout.
pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    // A link is followed here and not by the system, which counts the bytes of the path it is given.
    let target = fs::read_link(path);
    UnixStream::connect(target.as_deref().unwrap_or(path)).await
}

fn bind_elsewhere(path: &Path) -> io::Result<(UnixListener, PathBuf)> {
    let rollout = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let directory = std::env::temp_dir().join(format!("{SHORT}{rollout}-{}", std::process::id()));
    // It must be new: what somebody else made there is theirs.
    DirBuilder::new().mode(0o700).create(&directory)?;
    let at = directory.join("s");
    let bound = UnixListener::bind(&at).and_then(|listener| symlink(&at, path).map(|()| listener));
    if bound.is_err() {
        clear(&at);
    }
    Ok((bound?, at))
}

/// Removes a socket, or a link to one with what it leads to; anything else is not of this program and stays.
fn remove(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    let there = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?.file_type(),
    };
    if there.is_symlink() {
        clear(&fs::read_link(path)?);
    } else if !there.is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something that is no socket is in its place"));
    }
    fs::remove_file(path)
}

/// Removes a socket with a short path and its directory.
fn clear(at: &Path) {
    let Some(directory) = at.parent() else { return };
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with(SHORT) {
        // The system's own tidying may have been here before.
        let _ = fs::remove_file(at);
        let _ = fs::remove_dir(directory);
    }
}
