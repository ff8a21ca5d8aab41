//! One loopback port for each process, the same over restarts, closed while the process does not listen.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::cut::{Connection, CutListener};

/// A port, and what listens there.
pub(super) struct Gate {
    addr: SocketAddr,
    /// Bound but not listening, for as long as the simulator runs: connections are refused, and nobody else gets the
    /// port while the process is down.
    _reserved: TcpSocket,
    open: Option<Open>,
}

struct Open {
    listener: usize,
    cut: CancellationToken,
    task: JoinHandle<()>,
}

impl Gate {
    /// Takes a free port of the loopback interface.
    pub(super) fn reserve() -> io::Result<Self> {
        let socket = bound((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self { addr: socket.local_addr()?, _reserved: socket, open: None })
    }

    pub(super) fn address(&self) -> String {
        self.addr.to_string()
    }

    /// Listens for the process with this number, or for none. What listened before is closed, its connections too.
    pub(super) async fn set(
        &mut self,
        listener: Option<usize>,
        ended: &CancellationToken,
        app: impl FnOnce() -> Router,
    ) -> io::Result<()> {
        if self.open.as_ref().map(|open| open.listener) == listener {
            return Ok(());
        }
        self.close().await;
        let Some(listener) = listener else {
            return Ok(());
        };
        let cut = ended.child_token();
        let accepting = CutListener { inner: bound(self.addr)?.listen(1024)?, cut: cut.clone() };
        let service = app().into_make_service_with_connect_info::<Connection>();
        let over = cut.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                () = over.cancelled() => {}
                _ = axum::serve(accepting, service).into_future() => {}
            }
        });
        self.open = Some(Open { listener, cut, task });
        Ok(())
    }

    /// Closes the port; when this is done, connections are refused.
    pub(super) async fn close(&mut self) {
        if let Some(open) = self.open.take() {
            open.cut.cancel();
            // It only fails if it was aborted, and then it is closed too.
            let _ = open.task.await;
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Some(open) = &self.open {
            open.cut.cancel();
        }
    }
}

/// Two sockets may be bound to one port as long as none of them listens; then one of them may begin to.
fn bound(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}
