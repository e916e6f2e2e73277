//! Peers that answer some of what they are asked.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use kube::client::Body;
use liqo_identity::{Identity, Wanted};
use liqo_kit::clusters::{Clusters, Credentials};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tower::BoxError;

use super::*;
use crate::Settings;

/// A room whose peer refuses to show one kind, and says nothing about all others.
fn room_refused(refused: &'static str) -> Room {
    let answer = move |request: Request<Body>| async move {
        if !request.uri().path().ends_with(refused) {
            std::future::pending::<()>().await;
        }
        let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403 });
        let answer = Response::builder().status(StatusCode::FORBIDDEN);
        Ok::<_, BoxError>(answer.body(Body::from(status.to_string().into_bytes()))?)
    };
    let client = move || kube::Client::new(tower::service_fn(answer), "default");
    let wanted = Wanted { id: None, name: Some("south".parse().unwrap()) };
    let identity = watch::Sender::new(Some(Arc::new(Identity::generate(&wanted).unwrap())));
    let settings = Settings::new("liqo".parse().unwrap(), "manager-0");
    let clusters = Clusters::connecting(move |_| Ok(client()));
    Room::with_clusters(client(), settings, identity.subscribe(), clusters)
}

fn access() -> Access {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": "https://127.0.0.1:1" } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "users": [{ "name": "u", "user": { "token": "t" } }],
    });
    Access {
        namespace: "liqo-tenant-south".parse().unwrap(),
        credentials: Credentials::kubeconfig(kubeconfig.to_string().as_bytes()).unwrap(),
    }
}

/// The others may have been open before, and are not told of it.
#[tokio::test(start_paused = true)]
async fn who_may_not_look_at_one_kind_any_more_is_put_out() {
    for refused in ["resourcerequests", "resourceoffers", "contracts"] {
        let room = room_refused(refused);
        let (north, leading) = ("north-id".parse().unwrap(), CancellationToken::new());
        room.link(&north, &access(), Purpose::default(), &leading);
        let troubles = || room.0.links.lock().troubles();
        let put_out = async {
            while !matches!(&troubles()[..], [(peer, Some(_), true)] if *peer == north) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let found = timeout(LOOK_AGAIN_WITHIN, put_out).await;
        assert!(found.is_ok(), "{refused} is refused: {:?}", troubles());
        room.unlink_all();
    }
}
