//! Listeners whose connections can be cut: a process that is gone leaves no connection open.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A listener that hands out connections which all end when its token is cancelled.
pub(super) struct CutListener {
    pub(super) inner: TcpListener,
    pub(super) cut: CancellationToken,
}

/// A connection that ends when its token is cancelled.
pub(super) struct CutStream {
    inner: TcpStream,
    token: CancellationToken,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Lets a handler end its own connection.
#[derive(Clone)]
pub(super) struct Connection(pub(super) CancellationToken);

impl Listener for CutListener {
    type Io = CutStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (inner, addr) = Listener::accept(&mut self.inner).await;
        let token = self.cut.child_token();
        let stream = CutStream { inner, cancelled: Box::pin(token.clone().cancelled_owned()), token };
        (stream, addr)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.inner.local_addr()
    }
}

impl Connected<IncomingStream<'_, CutListener>> for Connection {
    fn connect_info(stream: IncomingStream<'_, CutListener>) -> Self {
        Self(stream.io().token.clone())
    }
}

impl CutStream {
    fn is_cut(&mut self, cx: &mut Context<'_>) -> bool {
        self.token.is_cancelled() || self.cancelled.as_mut().poll(cx).is_ready()
    }
}

fn reset<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
}

impl AsyncRead for CutStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_cut(cx) {
            return reset();
        }
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for CutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_cut(cx) {
            return reset();
        }
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
