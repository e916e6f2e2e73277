//! A link between two clusters that can be cut: what is between the one's rooms and the other's API server and service.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Whole,
    /// Whoever uses it is told at once that it does not work: connections are reset.
    Reset,
    /// Nobody is told anything: what is sent is lost, and so are the connections of that time when it is whole again, as
    /// when something in between has forgotten them.
    Silent,
}

/// Ports of this machine that lead to others, while the link is whole.
pub(crate) struct Relay {
    link: watch::Sender<Link>,
    tasks: JoinSet<()>,
}

impl Relay {
    pub(crate) fn new() -> Self {
        Self { link: watch::Sender::new(Link::Whole), tasks: JoinSet::new() }
    }

    /// A port that leads there.
    pub(crate) async fn to(&mut self, target: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let link = self.link.clone();
        self.tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (caller, _) = listener.accept().await.unwrap();
                connections.spawn(carry(caller, target, link.subscribe()));
            }
        });
        address
    }

    pub(crate) fn set(&self, link: Link) {
        self.link.send_replace(link);
    }

    /// Something that cuts the link.
    pub(crate) fn cutter(&self, link: Link) -> impl Fn() + Send + Sync + 'static {
        let sender = self.link.clone();
        move || {
            sender.send_replace(link);
        }
    }
}

async fn carry(mut caller: TcpStream, target: SocketAddr, mut link: watch::Receiver<Link>) {
    let carried = async {
        if let Ok(mut called) = TcpStream::connect(target).await {
            let _ = copy_bidirectional(&mut caller, &mut called).await;
        }
    };
    let state = tokio::select! {
        biased;
        state = link.wait_for(|link| *link != Link::Whole) => *state.unwrap(),
        () = carried => return,
    };
    match state {
        Link::Reset => caller.set_zero_linger().unwrap(),
        _ => std::future::pending().await,
    }
}
