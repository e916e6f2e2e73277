//! What a consumer gets at a real provider, with exactly the rights of the chart.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/install.rs"]
mod install;
#[path = "support/world.rs"]
mod world;

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ResourceQuota, Secret};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::namespace_map::MappingPhase::{Accepted, CreationLoopBackOff, Terminating};
use liqo_api::{NamespaceMap, ShadowPod};
use liqo_core::contract::Enforcement;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use tokio::time::Instant;
use world::{Consumer, MOST_CONFIG_MAPS, Process, Provider, eventually, is_of, pod};

const AGREED: [(&str, &str); 3] = [("cpu", "4"), ("memory", "8Gi"), ("pods", "20")];

#[tokio::test(flavor = "multi_thread")]
async fn consumers_get_namespaces_and_pods_by_their_contracts() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("provider", 3)]).await;
    let provider = Provider::new(sandbox.cluster("provider")).await;
    let process = provider.start().await;
    let milan = provider.consumer("milan").await;
    let turin = provider.consumer("turin").await;

    without_a_contract_there_is_nothing(&milan).await;
    a_namespace_comes_with_all_it_needs(&provider, &milan).await;
    objects_have_an_end(&provider, &milan).await;
    names_of_others_are_not_given(&provider, &milan, &turin).await;
    what_somebody_changes_is_put_right(&provider, &milan).await;
    a_pod_lives_as_long_as_it_is_wanted(&provider, &milan).await;
    a_pod_that_came_to_its_end_is_not_started_again(&provider, &milan).await;
    the_contract_holds_over_all_namespaces(&provider, &milan, &process).await;
    a_soft_contract_is_told_of(&provider, &turin).await;
    nothing_is_written_while_nothing_changes(&provider, process).await;
    let process = provider.start().await;
    a_namespace_that_is_not_asked_for_goes(&provider, &milan).await;
    who_is_put_out_loses_its_rights_at_once(&provider, &milan).await;
    without_its_contract_a_consumer_has_nothing(&provider, &milan).await;
    without_its_place_a_consumer_has_nothing(&provider, &turin).await;
    drop(process);
}

async fn without_a_contract_there_is_nothing(milan: &Consumer<'_>) {
    milan.ask("map", &[("shop", "shop-milan")]).await;
    milan.wait_told("map", "shop", CreationLoopBackOff, "NoContract").await;
}

async fn a_namespace_comes_with_all_it_needs(provider: &Provider<'_>, milan: &Consumer<'_>) {
    milan.sign(&AGREED, Enforcement::Hard).await;
    milan.wait_told("map", "shop", Accepted, "").await;
    let namespace: Namespace = Api::all(provider.client.clone()).get("shop-milan").await.unwrap();
    assert_eq!(namespace.labels()["liqo.io/remote-cluster-id"], "milan");
    assert_eq!(namespace.labels()["pod-security.kubernetes.io/enforce"], "baseline");
    assert_eq!(namespace.annotations()["liqo.io/original-name"], "shop");
    assert_eq!(namespace.annotations()["liqo.io/managed-by-namespace-map"], "liqo-tenant-milan/map");
    let quota = provider.api::<ResourceQuota>("shop-milan").get("liqo-contract").await.unwrap();
    let hard = quota.spec.unwrap().hard.unwrap();
    assert_eq!((hard["requests.cpu"].0.as_str(), hard["pods"].0.as_str()), ("4", "20"));
    let binding = provider.api::<RoleBinding>("shop-milan").get("liqo-tenant").await.unwrap();
    assert_eq!(binding.role_ref.name, "liqo-remote-tenant");
    // The consumer is in, and nowhere else.
    let config = |name: &str| ConfigMap {
        metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
        ..ConfigMap::default()
    };
    let settings = config("settings");
    eventually("the consumer is let in", || milan.create("shop-milan", &settings)).await;
    for elsewhere in ["default", "kube-system", "liqo", "liqo-tenant-turin"] {
        let said = milan.create(elsewhere, &config("settings")).await.unwrap_err();
        assert!(said.starts_with("403"), "{elsewhere}: {said}");
    }
    let pods: Api<Pod> = milan.api("shop-milan");
    let own: Pod =
        serde_json::from_value(json!({ "metadata": { "name": "own" }, "spec": pod("1m") })).unwrap();
    assert!(milan.create("shop-milan", &own).await.unwrap_err().starts_with("403"));
    assert!(pods.list(&ListParams::default()).await.is_ok());
}

/// A consumer that would fill the store is refused, in words that say what there is too much of, and nobody else.
async fn objects_have_an_end(provider: &Provider<'_>, milan: &Consumer<'_>) {
    let config = |n: u32| ConfigMap {
        metadata: kube::api::ObjectMeta { name: Some(format!("fill-{n}")), ..Default::default() },
        ..ConfigMap::default()
    };
    let mut made = 0;
    let said = loop {
        let next = config(made);
        // Until Kubernetes has counted what there is, or while it counts, it refuses for that.
        let taken = eventually("it is taken, or too much", || async {
            match milan.create("shop-milan", &next).await {
                Ok(()) => Ok(Ok(())),
                Err(said) if said.contains("exceeded quota") => Ok(Err(said)),
                Err(said) => Err(said),
            }
        });
        match taken.await {
            Ok(()) => made += 1,
            Err(said) => break said,
        }
        assert!(made <= MOST_CONFIG_MAPS, "there is no end");
    };
    // Two were there: the one of Kubernetes itself, and one that was made before.
    assert!(made >= MOST_CONFIG_MAPS - 2, "{made}: {said}");
    assert!(said.starts_with("403"), "{said}");
    assert!(said.contains("exceeded quota: liqo-objects") && said.contains("count/configmaps=1"), "{said}");
    let quota = provider.api::<ResourceQuota>("shop-milan").get("liqo-objects").await.unwrap();
    let hard = quota.spec.unwrap().hard.unwrap();
    for kind in ["secrets", "services", "persistentvolumeclaims"] {
        assert!(hard.contains_key(&format!("count/{kind}")), "{kind}: {hard:?}");
    }
    // The consumer cannot give itself more.
    let more = json!({ "spec": { "hard": { "count/configmaps": "1000000" } } });
    let quotas = milan.api::<ResourceQuota>("shop-milan");
    let refused = quotas.patch("liqo-objects", &PatchParams::default(), &Patch::Merge(&more)).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    // What is given back may be used again.
    let configs = milan.api::<ConfigMap>("shop-milan");
    for n in 0..made {
        configs.delete(&format!("fill-{n}"), &DeleteParams::default()).await.unwrap();
    }
    let again = config(0);
    eventually("there is room again", || milan.create("shop-milan", &again)).await;
}

async fn names_of_others_are_not_given(provider: &Provider<'_>, milan: &Consumer<'_>, turin: &Consumer<'_>) {
    install::create_namespace(&provider.client, "payroll", &json!({})).await;
    let hostile = [
        ("a", "kube-system", "ProtectedName"),
        ("b", "kube-anything", "ProtectedName"),
        ("c", "default", "ProtectedName"),
        ("d", "liqo", "ProtectedName"),
        ("e", "liqo-tenant-turin", "ProtectedName"),
        ("f", "payroll", "NameTaken"),
        ("g", "shop-milan", "NameTaken"),
    ];
    turin.sign(&AGREED, Enforcement::Hard).await;
    let wanted: Vec<_> = hostile.iter().map(|(local, remote, _)| (*local, *remote)).collect();
    turin.ask("map", &wanted).await;
    for (local, _, reason) in hostile {
        turin.wait_told("map", local, CreationLoopBackOff, reason).await;
    }
    let payroll: Namespace = Api::all(provider.client.clone()).get("payroll").await.unwrap();
    assert!(!payroll.labels().contains_key("liqo.io/remote-cluster-id"), "{payroll:?}");
    // As many as it may have, and not one more.
    let many: Vec<(String, String)> = (0..12).map(|n| (format!("n{n:02}"), format!("many-{n:02}"))).collect();
    let many: Vec<_> = many.iter().map(|(local, remote)| (local.as_str(), remote.as_str())).collect();
    turin.ask("many", &many).await;
    turin.wait_told("many", "n07", Accepted, "").await;
    turin.wait_told("many", "n08", CreationLoopBackOff, "TooMany").await;
    turin.wait_told("many", "n11", CreationLoopBackOff, "TooMany").await;
    // Ten thousand do not even fit into a map.
    let flood: Vec<(String, String)> = (0..10_000).map(|n| (format!("n{n}"), format!("f{n}"))).collect();
    let desired = flood.into_iter().collect();
    let mut map = NamespaceMap::new("flood", liqo_api::NamespaceMapSpec { desired_mapping: desired });
    let labels = [("liqo.io/replicated", "true"), ("liqo.io/originID", "turin")];
    map.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let said = turin.create(&turin.place, &map).await.unwrap_err();
    assert!(said.starts_with("422"), "{}", &said[..said.len().min(300)]);
    turin.api::<NamespaceMap>(&turin.place).delete("many", &DeleteParams::default()).await.unwrap();
    // Both may have a namespace of the same name, at home.
    turin.ask("map", &[("shop", "shop-turin")]).await;
    turin.wait_told("map", "shop", Accepted, "").await;
    milan.wait_told("map", "shop", Accepted, "").await;
    for name in ["many-00", "many-07"] {
        wait_no_namespace(provider, name).await;
    }
}

async fn what_somebody_changes_is_put_right(provider: &Provider<'_>, milan: &Consumer<'_>) {
    let quotas = provider.api::<ResourceQuota>("shop-milan");
    let bindings = provider.api::<RoleBinding>("shop-milan");
    quotas.delete("liqo-contract", &DeleteParams::default()).await.unwrap();
    let another =
        json!({ "subjects": [{ "kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io" }] });
    bindings.patch("liqo-tenant", &PatchParams::default(), &Patch::Merge(&another)).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(provider.client.clone());
    let lax = json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": "privileged" } } });
    namespaces.patch("shop-milan", &PatchParams::default(), &Patch::Merge(&lax)).await.unwrap();
    eventually("what was changed is put right", || async {
        let quota = quotas.get_opt("liqo-contract").await.unwrap();
        let binding = bindings.get("liqo-tenant").await.map_err(|error| error.to_string())?;
        let subjects = binding.subjects.unwrap_or_default();
        let namespace = namespaces.get("shop-milan").await.unwrap();
        let level = &namespace.labels()["pod-security.kubernetes.io/enforce"];
        // Pods are refused by a quota that Kubernetes has not counted yet.
        let counted = quota.as_ref().and_then(|it| it.status.as_ref()?.hard.as_ref()).is_some();
        let ours = subjects.first().is_some_and(|it| it.name == "milan");
        let fine = counted && ours && level == "baseline";
        if fine { Ok(()) } else { Err(format!("{quota:?} {subjects:?} {level}")) }
    })
    .await;
    milan.wait_told("map", "shop", Accepted, "").await;
}

async fn a_pod_lives_as_long_as_it_is_wanted(provider: &Provider<'_>, milan: &Consumer<'_>) {
    let space = "shop-milan";
    milan.want(space, "web", &pod("100m")).await.unwrap();
    let running = |pod: &Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running");
    let first = milan.wait_pod(space, "web", running).await;
    assert_eq!(first.labels()["app"], "test");
    assert_eq!(first.labels()["liqo.io/managed-by"], "shadowpod");
    assert_eq!(first.labels()["virtualkubelet.liqo.io/origin"], "milan");
    assert_eq!(first.annotations()["note"], "kept");
    assert_eq!(first.owner_references()[0].kind, "ShadowPod");
    let spec = first.spec.as_ref().unwrap();
    assert_eq!((spec.automount_service_account_token, spec.priority), (Some(false), Some(0)));
    // Nothing is told that the pod itself says.
    let shadow = milan.api::<ShadowPod>(space).get("web").await.unwrap();
    assert_eq!(shadow.status, None);

    provider.api::<Pod>(space).delete("web", &DeleteParams::default().grace_period(0)).await.unwrap();
    let uid = first.uid();
    let second = milan.wait_pod(space, "web", is_of(uid.as_deref())).await;
    milan.drop_pod(space, "web").await;
    milan.wait_no_pod(space, "web").await;
    // The same name again is another pod.
    milan.want(space, "web", &pod("100m")).await.unwrap();
    let uid = second.uid();
    milan.wait_pod(space, "web", is_of(uid.as_deref())).await;
    milan.drop_pod(space, "web").await;
    milan.wait_no_pod(space, "web").await;
}

async fn a_pod_that_came_to_its_end_is_not_started_again(provider: &Provider<'_>, milan: &Consumer<'_>) {
    let space = "shop-milan";
    let mut job = pod("100m");
    job["restartPolicy"] = json!("Never");
    milan.want(space, "job", &job).await.unwrap();
    // What plays the kubelet would say later that it runs.
    let running = |pod: &Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running");
    milan.wait_pod(space, "job", running).await;
    let pods = provider.api::<Pod>(space);
    let done = json!({ "status": { "phase": "Succeeded" } });
    pods.patch_status("job", &PatchParams::default(), &Patch::Merge(&done)).await.unwrap();
    pods.delete("job", &DeleteParams::default().grace_period(0)).await.unwrap();
    eventually("its end is noted", || async {
        let shadow = milan.api::<ShadowPod>(space).get("job").await.unwrap();
        let phase = shadow.status.as_ref().and_then(|status| status.phase);
        let done = phase == Some(liqo_api::shadow_pod::PodPhase::Succeeded);
        if done { Ok(()) } else { Err(format!("{:?}", shadow.status)) }
    })
    .await;
    // Another one is made after it; this one is not.
    milan.want(space, "later", &pod("1m")).await.unwrap();
    milan.wait_pod(space, "later", |_| true).await;
    assert!(pods.get_opt("job").await.unwrap().is_none());
    for name in ["job", "later"] {
        milan.drop_pod(space, name).await;
    }
    milan.wait_no_pod(space, "later").await;
}

async fn the_contract_holds_over_all_namespaces(
    provider: &Provider<'_>,
    milan: &Consumer<'_>,
    process: &Process,
) {
    milan.ask("map", &[("shop", "shop-milan"), ("blog", "blog-milan")]).await;
    milan.wait_told("map", "blog", Accepted, "").await;
    let (shop, blog) = ("shop-milan", "blog-milan");
    let large = pod("1500m");
    eventually("the consumer is let in", || milan.want(blog, "b1", &large)).await;
    milan.want(shop, "s1", &pod("1500m")).await.unwrap();
    milan.wait_pod(shop, "s1", |_| true).await;
    milan.wait_pod(blog, "b1", |_| true).await;
    // Each namespace by itself would have room for it; both together have not.
    milan.want(blog, "b2", &pod("1500m")).await.unwrap();
    let message = milan.wait_refused(blog, "b2", "QuotaExceeded").await;
    assert!(message.contains("cpu (1500m wanted, 4 agreed for all pods)"), "{message}");
    eventually("it is counted", || async {
        let refused = process.metric("liqo_hosting_pods_refused_total{reason=\"QuotaExceeded\"}");
        if refused >= Some(1.0) { Ok(()) } else { Err(format!("{refused:?}")) }
    })
    .await;
    // What was not lent is not there at all.
    let mut gpu = pod("1m");
    gpu["containers"][0]["resources"]["limits"] = json!({ "example.com/gpu": "1" });
    milan.want(blog, "gpu", &gpu).await.unwrap();
    let message = milan.wait_refused(blog, "gpu", "QuotaExceeded").await;
    assert!(message.contains("example.com/gpu"), "{message}");
    milan.drop_pod(blog, "gpu").await;
    // Room that becomes free is used.
    milan.drop_pod(shop, "s1").await;
    milan.wait_pod(blog, "b2", |_| true).await;
    eventually("it is told that there is a pod after all", || async {
        let shadow = milan.api::<ShadowPod>(blog).get("b2").await.unwrap();
        let conditions = shadow.status.map(|it| it.conditions).unwrap_or_default();
        if conditions[0].status == "True" { Ok(()) } else { Err(format!("{conditions:?}")) }
    })
    .await;
    // A burst never exceeds what was agreed, also where the quota of each namespace would allow it.
    for n in 0..20 {
        let space = if n % 2 == 0 { shop } else { blog };
        milan.want(space, &format!("burst-{n}"), &pod("250m")).await.unwrap();
    }
    eventually("the contract is used up", || async {
        let pods = all_pods(provider, &[shop, blog]).await;
        // 2 × 1500m + 4 × 250m.
        if pods == 6 { Ok(()) } else { Err(format!("{pods} pods")) }
    })
    .await;
    for n in 0..20 {
        let space = if n % 2 == 0 { shop } else { blog };
        milan.drop_pod(space, &format!("burst-{n}")).await;
    }
    eventually("the burst is gone", || async {
        let pods = all_pods(provider, &[shop, blog]).await;
        if pods == 2 { Ok(()) } else { Err(format!("{pods} pods")) }
    })
    .await;
}

async fn all_pods(provider: &Provider<'_>, namespaces: &[&str]) -> usize {
    let mut count = 0;
    for namespace in namespaces {
        count += provider.api::<Pod>(namespace).list(&ListParams::default()).await.unwrap().items.len();
    }
    count
}

async fn a_soft_contract_is_told_of(provider: &Provider<'_>, turin: &Consumer<'_>) {
    turin.sign(&[("cpu", "1"), ("pods", "5")], Enforcement::Soft).await;
    let quotas = provider.api::<ResourceQuota>("shop-turin");
    eventually("there is no quota", || async {
        let quota = quotas.get_opt("liqo-contract").await.unwrap();
        quota.map_or(Ok(()), |quota| Err(format!("{:?}", quota.spec)))
    })
    .await;
    turin.want("shop-turin", "large", &pod("2")).await.unwrap();
    turin.wait_pod("shop-turin", "large", |_| true).await;
    let events: Api<k8s_openapi::api::events::v1::Event> = turin.api("shop-turin");
    eventually("it is told", || async {
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let found = events.iter().any(|it| it.reason.as_deref() == Some("QuotaExceeded"));
        if found { Ok(()) } else { Err(format!("{events:?}")) }
    })
    .await;
}

async fn nothing_is_written_while_nothing_changes(provider: &Provider<'_>, process: Process) {
    let versions = || async {
        let mut all = Vec::new();
        for place in ["liqo-tenant-milan", "liqo-tenant-turin"] {
            let maps = provider.api::<NamespaceMap>(place).list(&ListParams::default()).await.unwrap();
            all.extend(maps.iter().map(|it| (it.name_any(), it.resource_version())));
        }
        for space in ["shop-milan", "blog-milan", "shop-turin"] {
            let shadows = provider.api::<ShadowPod>(space).list(&ListParams::default()).await.unwrap();
            all.extend(shadows.iter().map(|it| (it.name_any(), it.resource_version())));
            let bindings = provider.api::<RoleBinding>(space).list(&ListParams::default()).await.unwrap();
            all.extend(bindings.iter().map(|it| (it.name_any(), it.resource_version())));
            let pods = provider.api::<Pod>(space).list(&ListParams::default()).await.unwrap();
            all.extend(pods.iter().map(|it| (it.name_any(), it.uid())));
            let space: Namespace = Api::all(provider.client.clone()).get(space).await.unwrap();
            all.push((space.name_any(), space.resource_version()));
        }
        all
    };
    let before = at_rest(versions).await;
    drop(process);
    let process = provider.start().await;
    eventually("the new one leads and has looked", || async {
        let shown = process.metric("liqo_hosting_namespaces ");
        if shown == Some(3.0) { Ok(()) } else { Err(format!("{shown:?}")) }
    })
    .await;
    assert_eq!(versions().await, before);
}

/// Waits until all that follows from what happened is written; what `look` says then.
async fn at_rest<T, Fut>(look: impl Fn() -> Fut) -> T
where
    T: PartialEq + std::fmt::Debug,
    Fut: Future<Output = T>,
{
    const REST: Duration = Duration::from_secs(1);
    const DEADLINE: Duration = Duration::from_secs(60);
    let began = Instant::now();
    let (mut last, mut since) = (look().await, began);
    while since.elapsed() < REST {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = look().await;
        if now != last {
            assert!(began.elapsed() < DEADLINE, "the room does not come to rest: {last:?} {now:?}");
            (last, since) = (now, Instant::now());
        }
    }
    last
}

async fn a_namespace_that_is_not_asked_for_goes(provider: &Provider<'_>, milan: &Consumer<'_>) {
    milan.ask("map", &[("shop", "shop-milan")]).await;
    eventually("blog goes", || async {
        match milan.told("map", "blog").await {
            None => Ok(()),
            Some(told) if told.phase == Terminating || told.phase == Accepted => Err(format!("{told:?}")),
            Some(told) => panic!("{told:?}"),
        }
    })
    .await;
    wait_no_namespace(provider, "blog-milan").await;
    milan.wait_told("map", "shop", Accepted, "").await;
}

/// While its contract is still in force: nobody has ended it yet.
async fn who_is_put_out_loses_its_rights_at_once(provider: &Provider<'_>, milan: &Consumer<'_>) {
    let namespaces: Api<Namespace> = Api::all(provider.client.clone());
    let put_out = async |since: Value| {
        let patch = json!({ "metadata": { "annotations": { "authentication.liqo.io/put-out": since } } });
        namespaces.patch(&milan.place, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    };
    let (secrets, shadows) = (milan.api::<Secret>("shop-milan"), milan.api::<ShadowPod>("shop-milan"));
    secrets.list(&ListParams::default()).await.expect("its rights");
    milan.want("shop-milan", "runs-on", &pod("1m")).await.unwrap();
    let before = milan.wait_pod("shop-milan", "runs-on", |_| true).await;
    let started = Instant::now();
    put_out(json!("2026-01-01T00:00:00Z")).await;
    eventually("its rights are gone", || async {
        let seen = secrets.list(&ListParams::default()).await.map(drop);
        let asked = shadows.list(&ListParams::default()).await.map(drop);
        let forbidden =
            |said: &kube::Result<()>| matches!(said, Err(kube::Error::Api(status)) if status.code == 403);
        if forbidden(&seen) && forbidden(&asked) { Ok(()) } else { Err(format!("{seen:?} {asked:?}")) }
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert!(milan.want("shop-milan", "more", &pod("1m")).await.unwrap_err().starts_with("403"));
    // Let in before its namespaces went, it has them back as they were.
    put_out(Value::Null).await;
    milan.wait_told("map", "shop", Accepted, "").await;
    eventually("it is let in", || async {
        secrets.list(&ListParams::default()).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    let after = milan.wait_pod("shop-milan", "runs-on", |_| true).await;
    assert_eq!(before.uid(), after.uid());
    // And else they go.
    put_out(json!("2026-01-01T00:00:00Z")).await;
    wait_no_namespace(provider, "shop-milan").await;
    put_out(Value::Null).await;
    milan.wait_told("map", "shop", Accepted, "").await;
    eventually("it is let in", || async {
        secrets.list(&ListParams::default()).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
}

async fn without_its_contract_a_consumer_has_nothing(provider: &Provider<'_>, milan: &Consumer<'_>) {
    milan.end().await;
    // One that is signed in time is as good as the one before.
    milan.sign(&AGREED, Enforcement::Hard).await;
    milan.want("shop-milan", "goes-on", &pod("1m")).await.unwrap();
    milan.wait_pod("shop-milan", "goes-on", |_| true).await;
    milan.end().await;
    wait_no_namespace(provider, "shop-milan").await;
    milan.wait_told("map", "shop", CreationLoopBackOff, "NoContract").await;
}

async fn without_its_place_a_consumer_has_nothing(provider: &Provider<'_>, turin: &Consumer<'_>) {
    let namespaces: Api<Namespace> = Api::all(provider.client.clone());
    namespaces.delete(&turin.place, &DeleteParams::default()).await.unwrap();
    wait_no_namespace(provider, "shop-turin").await;
}

async fn wait_no_namespace(provider: &Provider<'_>, name: &str) {
    let namespaces: Api<Namespace> = Api::all(provider.client.clone());
    eventually(&format!("{name} goes"), || async {
        let found = namespaces.get_opt(name).await.unwrap();
        found.map_or(Ok(()), |found| Err(format!("{:?} {:?}", found.metadata, found.status)))
    })
    .await;
}
