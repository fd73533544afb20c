//! Sockets: TCP and Unix, as one kind.

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;

use crate::open::ServerError;

/// A listening socket, which does not block.
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket, and its file, which is removed at the end.
    Unix(UnixListener, PathBuf),
}

/// A connection, which does not block.
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl Listener {
    /// Listens on an address. `backlog` connections may wait to be accepted.
    ///
    /// # Errors
    /// [`ServerError::Io`] with the address.
    pub fn tcp(address: SocketAddr, backlog: u32) -> Result<Self, ServerError> {
        let failed =
            |source| ServerError::Io { what: format!("cannot listen on {address}"), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        listen(&listener, backlog).map_err(failed)?;
        Ok(Self::Tcp(listener))
    }

    /// Listens on a Unix socket with these permissions. A socket that a dead server has left is
    /// replaced. `backlog` connections may wait to be accepted.
    ///
    /// # Errors
    /// [`ServerError::Io`] with the path.
    pub fn unix(path: &Path, mode: u32, backlog: u32) -> Result<Self, ServerError> {
        let name = path.display();
        let failed = |source| ServerError::Io { what: format!("cannot listen on {name}"), source };
        let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if is_socket && UnixStream::connect(path).is_err() {
            fs::remove_file(path).map_err(failed)?;
        }
        let listener = bind(path, mode).map_err(failed)?;
        fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        listen(&listener, backlog).map_err(failed)?;
        Ok(Self::Unix(listener, path.to_owned()))
    }

    /// The address of a TCP socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(..) => None,
        }
    }

    /// Its name in `stats conns`: `tcp:127.0.0.1:11211`, `unix:/run/cache.sock`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Tcp(listener) => tcp_name(listener.local_addr()),
            Self::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }

    /// The next connection.
    ///
    /// # Errors
    /// The errors of the system, [`io::ErrorKind::WouldBlock`] if there is none.
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(stream))
            }
        }
    }
}

impl Stream {
    /// The client's name in `stats conns`, and that of the address it is connected to.
    #[must_use]
    pub fn names(&self) -> (String, String) {
        match self {
            Self::Tcp(stream) => (tcp_name(stream.peer_addr()), tcp_name(stream.local_addr())),
            Self::Unix(stream) => {
                let path = stream.local_addr().ok();
                let path = path.as_ref().and_then(|address| address.as_pathname());
                let path = path.unwrap_or(Path::new("?")).display();
                // Clients of Unix sockets have no address; memcached's name for that.
                ("unix:<AF 1>".to_owned(), format!("unix:{path}"))
            }
        }
    }
}

impl Stream {
    /// Ends the output, so that the client finds its end. What it sends is still read.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn end_output(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

/// Binds a Unix socket that gives group and others these permissions from its beginning, and its
/// owner all. The mask is one of the process, and holds for files that other threads make
/// meanwhile: these can be used by their owner.
fn bind(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let before = umask(Mode::from_raw_mode(0o077 & !mode));
    let bound = UnixListener::bind(path);
    umask(before);
    bound
}

/// Replaces the backlog of the standard library, which is short for a server.
fn listen(socket: &impl AsFd, backlog: u32) -> io::Result<()> {
    Ok(rustix::net::listen(socket, i32::try_from(backlog).unwrap_or(i32::MAX))?)
}

fn tcp_name(address: io::Result<SocketAddr>) -> String {
    match address {
        Ok(address @ SocketAddr::V4(_)) => format!("tcp:{address}"),
        Ok(address @ SocketAddr::V6(_)) => format!("tcp6:{address}"),
        // The client is gone.
        Err(_) => "tcp:?".to_owned(),
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // It does not matter if another process has removed it.
            let _ = fs::remove_file(path);
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No other user can connect before the permissions are set, and files that are made meanwhile
    /// can be used.
    #[test]
    fn a_socket_has_its_permissions_from_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0, 0o600, 0o640, 0o666, 0o777, 0o077] {
            let path = folder.path().join("bound");
            let bound = bind(&path, mode).unwrap();
            let found = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, 0o700 | mode & 0o077, "{mode:o}");
            drop(bound);
            fs::remove_file(&path).unwrap();
            let listener = Listener::unix(&path, mode, 5).unwrap();
            let found = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{mode:o}");
            drop(listener);
        }
        let path = folder.path().join("socket");
        let listener = Listener::unix(&path, 0o640, 5).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let names = || fs::read_dir(folder.path()).unwrap().count();
        assert_eq!((names(), listener.name()), (1, format!("unix:{}", path.display())));
        UnixStream::connect(&path).unwrap();
        // A living server, or another file, is not replaced.
        assert!(Listener::unix(&path, 0o600, 5).is_err());
        drop(listener);
        assert_eq!(names(), 0);
        fs::write(&path, "a letter").unwrap();
        assert!(Listener::unix(&path, 0o600, 5).is_err());
        assert_eq!((names(), fs::read(&path).unwrap()), (1, b"a letter".to_vec()));
    }
}
