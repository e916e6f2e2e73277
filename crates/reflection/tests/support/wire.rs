//! A wire that can be cut: what is under way meanwhile arrives later, as in networks that drop and repeat packets.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A wire to a server; it ends when it is dropped.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    whole: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl Wire {
    /// A wire to this server.
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (whole, state) = watch::channel(true);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                connections.spawn(join(near, server, state.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, whole, _tasks: tasks }
    }

    /// Nothing arrives any more.
    pub(crate) fn cut(&self) {
        self.whole.send_replace(false);
    }

    /// Everything arrives, also what was sent meanwhile.
    pub(crate) fn mend(&self) {
        self.whole.send_replace(true);
    }
}

async fn join(near: TcpStream, server: SocketAddr, mut whole: watch::Receiver<bool>) {
    let _ = whole.wait_for(|whole| *whole).await;
    let Ok(Ok(far)) = tokio::time::timeout(Duration::from_secs(5), TcpStream::connect(server)).await else {
        return;
    };
    let ((mut near_out, mut near_in), (mut far_out, mut far_in)) = (near.into_split(), far.into_split());
    tokio::select! {
        () = copy(&mut near_out, &mut far_in, whole.clone()) => {}
        () = copy(&mut far_out, &mut near_in, whole) => {}
    }
}

async fn copy(
    from: &mut tokio::net::tcp::OwnedReadHalf,
    to: &mut tokio::net::tcp::OwnedWriteHalf,
    mut whole: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16_384];
    while let Ok(read) = from.read(&mut bytes).await {
        if read == 0 || whole.wait_for(|whole| *whole).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
