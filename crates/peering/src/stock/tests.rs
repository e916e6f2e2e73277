use liqo_core::Resources;
use liqo_core::capacity::{Capacity, Load, Owner};
use liqo_core::selector::Selector;
use liqo_kit::watch::MetaOnly;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod reading;

pub(super) fn list(text: &str) -> Resources {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    Resources::parse(entries.map(|entry| entry.split_once('=').unwrap())).into_result().unwrap()
}

pub(super) fn node(name: &str, allocatable: &Value) -> NodeFacts {
    let node = json!({
        "metadata": {"name": name, "labels": {"zone": "a"}},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    NodeFacts::read(serde_json::from_value(node).unwrap()).unwrap()
}

pub(super) fn pod(node: &str, requests: &Value) -> PodFacts {
    let pod = json!({
        "metadata": {"name": "any"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": requests}}]},
    });
    PodFacts::read(serde_json::from_value(pod).unwrap()).unwrap()
}

fn lodging(peer: &str) -> Lodging {
    Lodging { peer: peer.parse().unwrap() }
}

fn policy(name: &str, spec: &Value) -> Policy {
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    read_policy(serde_json::from_value(policy).unwrap()).unwrap()
}

fn key(text: &str) -> Key {
    match text.split_once('/') {
        Some((namespace, name)) => Key::namespaced(namespace, name),
        None => Key::cluster(text),
    }
}

trait Filled {
    fn with<T>(self, at: &str, object: T) -> Self
    where
        Stock: Index<T>;
    fn without<T>(self, at: &str) -> Self
    where
        Stock: Index<T>;
}

impl Filled for Stock {
    fn with<T>(mut self, at: &str, object: T) -> Self
    where
        Self: Index<T>,
    {
        self.apply(&key(at), object);
        self
    }

    fn without<T>(mut self, at: &str) -> Self
    where
        Self: Index<T>,
    {
        Index::<T>::delete(&mut self, &key(at));
        self
    }
}

fn free_for(stock: &Stock, peer: &str) -> Resources {
    stock.capacity().free_for(&peer.parse().unwrap(), &Selector::everything())
}

#[test]
fn a_pod_takes_room_where_it_is_until_it_goes() {
    let stock = Stock::default()
        .with("n1", node("n1", &json!({"cpu": "4"})))
        .with("n2", node("n2", &json!({"cpu": "4"})))
        .with("shop/web", pod("n1", &json!({"cpu": "1"})));
    assert_eq!(free_for(&stock, "x"), list("cpu=7"));
    let stock = stock.with("shop/web", pod("n2", &json!({"cpu": "3"})));
    assert_eq!(free_for(&stock, "x"), list("cpu=5"));
    let stock = stock.without::<PodFacts>("shop/web");
    assert_eq!(free_for(&stock, "x"), list("cpu=8"));
    let fresh = Stock::default()
        .with("n1", node("n1", &json!({"cpu": "4"})))
        .with("n2", node("n2", &json!({"cpu": "4"})));
    assert_eq!(stock.capacity(), fresh.capacity(), "nothing is left behind");
}

#[test]
fn the_order_in_which_nodes_pods_and_namespaces_are_told_does_not_matter() {
    let steps: [fn(Stock) -> Stock; 3] = [
        |stock| stock.with("n", node("n", &json!({"cpu": "8"}))),
        |stock| stock.with("lent/a", pod("n", &json!({"cpu": "2"}))),
        |stock| stock.with("lent", lodging("x")),
    ];
    let expected = steps.iter().fold(Stock::default(), |stock, step| step(stock));
    assert_eq!((free_for(&expected, "x"), free_for(&expected, "y")), (list("cpu=8"), list("cpu=6")));
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let stock = order.iter().fold(Stock::default(), |stock, step| steps[*step](stock));
        assert_eq!(stock.capacity(), expected.capacity(), "{order:?}");
    }
}

#[test]
fn a_namespace_says_whose_its_pods_are_before_they_say_so_themselves() {
    let claims = PodFacts { peer: Some("y".parse().unwrap()), ..pod("n", &json!({"cpu": "2"})) };
    let stock = Stock::default().with("n", node("n", &json!({"cpu": "8"}))).with("ns/p", claims);
    assert_eq!(stock.capacity().used_anywhere_by("y"), list("cpu=2, pods=1"));
    let stock = stock.with("ns", lodging("x"));
    assert_eq!(stock.capacity().used_anywhere_by("y"), list(""));
    assert_eq!(stock.capacity().used_anywhere_by("x"), list("cpu=2, pods=1"));
    let stock = stock.with("ns", lodging("z"));
    assert_eq!(stock.capacity().used_anywhere_by("z"), list("cpu=2, pods=1"));
    let stock = stock.without::<Lodging>("ns");
    assert_eq!(stock.capacity().used_anywhere_by("y"), list("cpu=2, pods=1"));
}

#[test]
fn a_node_that_comes_back_finds_the_pods_that_stayed() {
    let stock = Stock::default()
        .with("n", node("n", &json!({"cpu": "8"})))
        .with("ns/a", pod("n", &json!({"cpu": "2"})))
        .without::<NodeFacts>("n");
    assert_eq!(free_for(&stock, "x"), list(""));
    let stock = stock.with("n", node("n", &json!({"cpu": "4"})));
    assert_eq!(free_for(&stock, "x"), list("cpu=2"));
}

#[test]
fn what_is_beyond_reckoning_is_counted_anew_when_it_goes() {
    let stock = Stock::default()
        .with("n", node("n", &json!({"cpu": "8"})))
        .with("ns/a", pod("n", &json!({"cpu": "1"})))
        .with("ns/b", pod("n", &json!({"cpu": "1e60"})));
    assert_eq!(free_for(&stock, "x"), list("cpu=0"));
    assert_eq!(free_for(&stock.without::<PodFacts>("ns/b"), "x"), list("cpu=7"));
}

/// What is done to a stock, and whether its answers may be others after it.
#[test]
fn the_revision_changes_with_what_offers_depend_on_and_with_nothing_else() {
    let image = |name: &str| NodeFacts {
        images: vec![Arc::new(Image { names: vec![name.to_owned()], size: 1 })],
        ..node("n", &json!({"cpu": "8"}))
    };
    let stock = || {
        let virtual_node = node("v", &json!({"cpu": "8"}));
        let virtual_node = NodeFacts {
            node: liqo_core::capacity::Node { virtual_node: true, ..virtual_node.node },
            images: Vec::new(),
        };
        Stock::default()
            .with("n", image("a"))
            .with("v", virtual_node)
            .with("ns/p", pod("n", &json!({"cpu": "1"})))
            .with("fast", ClassFacts { default: false })
            .with("ns/web", ServiceFacts)
            .with("p", policy("p", &json!({"services": ["shop/*"]})))
    };
    type Step = fn(Stock) -> Stock;
    let cases: [(&str, bool, Step); 17] = [
        ("the same pod", false, |it| it.with("ns/p", pod("n", &json!({"cpu": "1"})))),
        ("a larger pod", true, |it| it.with("ns/p", pod("n", &json!({"cpu": "2"})))),
        ("another pod", true, |it| it.with("ns/q", pod("n", &json!({})))),
        ("a pod of ours on a virtual node", false, |it| it.with("ns/q", pod("v", &json!({"cpu": "2"})))),
        ("a pod that was never there", false, |it| it.without::<PodFacts>("ns/q")),
        ("a heartbeat", false, |it| {
            let same = it.capacity().node("n").unwrap().clone();
            let images = it.images.get("n").unwrap().clone();
            it.with("n", NodeFacts { node: same, images })
        }),
        ("a larger node", true, |it| it.with("n", node("n", &json!({"cpu": "9"})))),
        ("other images that nobody is told about", false, |it| {
            let node = it.capacity().node("n").unwrap().clone();
            it.with("n", NodeFacts { node, images: Vec::new() })
        }),
        ("a namespace of a peer with pods", true, |it| it.with("ns", lodging("x"))),
        ("a namespace of a peer without pods", false, |it| it.with("empty", lodging("x"))),
        ("the same class", false, |it| it.with("fast", ClassFacts { default: false })),
        ("another default class", true, |it| it.with("fast", ClassFacts { default: true })),
        ("no class", true, |it| it.without::<ClassFacts>("fast")),
        ("a service that is not exported", false, |it| it.with("ns/api", ServiceFacts)),
        ("a service that is exported", true, |it| it.with("shop/api", ServiceFacts)),
        ("the same policy", false, |it| it.with("p", policy("p", &json!({"services": ["shop/*"]})))),
        ("another policy", true, |it| it.with("p", policy("p", &json!({"services": ["*"]})))),
    ];
    for (what, matters, step) in cases {
        let stock = stock();
        let before = stock.revision();
        assert_eq!(step(stock).revision() != before, matters, "{what}");
    }
    let told = stock().with("p", policy("p", &json!({"images": ["*"]})));
    let before = told.revision();
    assert_ne!(told.with("n", image("b")).revision(), before, "images that somebody is told about");
}

#[test]
fn policies_are_in_order_and_replaced_by_name() {
    let stock = Stock::default()
        .with("b", policy("b", &json!({})))
        .with("c", policy("c", &json!({})))
        .with("a", policy("a", &json!({})))
        .with("b", policy("b", &json!({"action": "Deny"})))
        .without::<Policy>("c");
    let names: Vec<&str> = stock.policies().iter().map(Policy::name).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(stock.policies()[1], policy("b", &json!({"action": "Deny"})));
}

#[test]
fn goods_are_what_the_policy_names_and_the_cluster_has() {
    let image = |names: &[&str], size| {
        Arc::new(Image { names: names.iter().map(|name| (*name).to_owned()).collect(), size })
    };
    let images = vec![image(&["docker.io/nginx:1", "nginx@sha256:1"], 5), image(&["private/secret:1"], 9)];
    let stock = Stock::default()
        .with("n", NodeFacts { images: images.clone(), ..node("n", &json!({})) })
        .with("m", NodeFacts { images, ..node("m", &json!({})) })
        .with("fast", ClassFacts { default: false })
        .with("slow", ClassFacts { default: true })
        .with("shop/web", ServiceFacts)
        .with("shop/db", ServiceFacts)
        .with("kube-system/dns", ServiceFacts);
    let extras = |spec: Value| policy("p", &spec).extras().clone();
    let goods = stock.goods(&extras(json!({})));
    let class = |name: &str, default| (name.to_owned(), default);
    assert_eq!(goods.storage_classes, [class("fast", false), class("slow", true)]);
    assert_eq!((goods.services.len(), goods.images.len()), (0, 0), "what is not named is not given away");

    let goods = stock.goods(&extras(json!({
        "storageClasses": ["fast", "gone"], "defaultStorageClass": "fast", "services": ["shop/*"], "images": ["docker.io/*"],
    })));
    assert_eq!(goods.storage_classes, [class("fast", true)]);
    let service = |name: &str| ("shop".to_owned(), name.to_owned());
    assert_eq!(goods.services, [service("db"), service("web")]);
    assert_eq!(goods.images, [image(&["docker.io/nginx:1"], 5)], "once, and by no name that is not shared");

    let goods =
        stock.goods(&extras(json!({"storageClasses": ["f*", "gone"], "defaultStorageClass": "gone"})));
    assert_eq!(goods.storage_classes, [class("fast", false)], "a default that is not there is none");
}

#[test]
fn a_flood_of_images_and_services_is_cut_at_what_an_offer_holds() {
    let many = |prefix: &str, count: i64| -> Vec<Arc<Image>> {
        (0..count).map(|size| Arc::new(Image { names: vec![format!("{prefix}{size}")], size })).collect()
    };
    let mut stock =
        Stock::default().with("n", NodeFacts { images: many("i", 1000), ..node("n", &json!({})) });
    for index in 0..1000 {
        stock.apply(&Key::namespaced("ns", &format!("s{index}")), ServiceFacts);
        stock.apply(&Key::cluster(&format!("class{index}")), ClassFacts { default: index == 999 });
    }
    let everything = policy("p", &json!({"services": ["*"], "images": ["*"]}));
    let goods = stock.goods(everything.extras());
    assert_eq!((goods.images.len(), goods.services.len(), goods.storage_classes.len()), (256, 256, 64));
    assert_eq!(goods.images.iter().map(|image| image.size).min(), Some(744), "the largest are told");
    assert!(goods.storage_classes.iter().any(|(name, default)| name == "class999" && *default));
}

#[test]
fn ten_thousand_pods_on_one_node_cost_no_more_than_their_number() {
    let mut stock = Stock::default().with("n", node("n", &json!({"cpu": "8", "pods": "100000"})));
    let pods = 10_000;
    let begin = tokio::time::Instant::now();
    for round in 1..=2 {
        for index in 0..pods {
            let requests = json!({"cpu": format!("{round}m"), "memory": "1Mi"});
            stock.apply(&Key::namespaced("ns", &format!("p{index}")), pod("n", &requests));
        }
    }
    let took = begin.elapsed();
    assert_eq!(
        stock.capacity().free_for(&"x".parse().unwrap(), &Selector::everything()),
        list("cpu=0, pods=90000")
    );
    // Twenty thousand changes; if each looked at all pods of the node, this would take minutes.
    assert!(took.as_secs() < 10, "{took:?}");
}

/// What happens to a stock.
#[derive(Clone, Debug)]
enum Happening {
    Node(u8, u8),
    NoNode(u8),
    Pod(u8, u8, u8),
    NoPod(u8),
    Lodge(u8, u8),
    NoLodging(u8),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0_u8..3, 0_u8..9).prop_map(|(node, cpu)| Happening::Node(node, cpu)),
        (0_u8..3).prop_map(Happening::NoNode),
        (0_u8..6, 0_u8..3, 0_u8..4).prop_map(|(pod, node, cpu)| Happening::Pod(pod, node, cpu)),
        (0_u8..6).prop_map(Happening::NoPod),
        (0_u8..3, 0_u8..2).prop_map(|(namespace, peer)| Happening::Lodge(namespace, peer)),
        (0_u8..3).prop_map(Happening::NoLodging),
    ]
}

/// The same, without any cleverness.
#[derive(Default)]
struct Plain {
    nodes: BTreeMap<u8, NodeFacts>,
    pods: BTreeMap<u8, PodFacts>,
    lodgings: BTreeMap<u8, Lodging>,
}

impl Plain {
    fn capacity(&self) -> Capacity {
        let mut capacity = Capacity::default();
        for node in self.nodes.values() {
            let there = self.pods.iter().filter(|(_, pod)| *pod.node == *node.node.name);
            let load: Load = there
                .map(|(number, pod)| {
                    let owner = self.lodgings.get(&(number % 3));
                    let owner = owner.map_or(Owner::Local, |lodging| Owner::Peer(lodging.peer.clone()));
                    (owner, pod.requests.as_ref().clone())
                })
                .collect();
            capacity.insert(node.node.clone(), load);
        }
        capacity
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn following_changes_ends_where_counting_anew_does(happenings in prop::collection::vec(happening(), 0..40)) {
        let mut stock = Stock::default();
        let mut plain = Plain::default();
        for happening in happenings {
            let node_key = |number: u8| Key::cluster(&format!("n{number}"));
            let pod_key = |number: u8| Key::namespaced(&format!("ns{}", number % 3), &format!("p{number}"));
            let namespace = |number: u8| Key::cluster(&format!("ns{number}"));
            match happening {
                Happening::Node(number, cpu) => {
                    let facts = node(node_key(number).name(), &json!({"cpu": cpu.to_string()}));
                    stock.apply(&node_key(number), facts.clone());
                    plain.nodes.insert(number, facts);
                }
                Happening::NoNode(number) => {
                    Index::<NodeFacts>::delete(&mut stock, &node_key(number));
                    plain.nodes.remove(&number);
                }
                Happening::Pod(number, on, cpu) => {
                    let facts = pod(node_key(on).name(), &json!({"cpu": cpu.to_string()}));
                    let copy = PodFacts { requests: Arc::new(facts.requests.as_ref().clone()), ..facts.clone() };
                    stock.apply(&pod_key(number), copy);
                    plain.pods.insert(number, facts);
                }
                Happening::NoPod(number) => {
                    Index::<PodFacts>::delete(&mut stock, &pod_key(number));
                    plain.pods.remove(&number);
                }
                Happening::Lodge(number, peer) => {
                    stock.apply(&namespace(number), lodging(&format!("peer{peer}")));
                    plain.lodgings.insert(number, lodging(&format!("peer{peer}")));
                }
                Happening::NoLodging(number) => {
                    Index::<Lodging>::delete(&mut stock, &namespace(number));
                    plain.lodgings.remove(&number);
                }
            }
            prop_assert_eq!(stock.capacity(), &plain.capacity());
        }
        prop_assert!(stock.known_names.len() <= 3 && stock.known_requests.len() <= plain.pods.len());
    }
}

#[test]
fn only_namespaces_of_peers_are_lodgings_and_copies_of_services_are_not_ours() {
    let meta = |labels: Value| -> MetaOnly {
        serde_json::from_value(json!({"metadata": {"name": "ns", "labels": labels}})).unwrap()
    };
    let peer = |labels| Lodging::read(&meta(labels)).map(|lodging| lodging.peer.to_string());
    assert_eq!(peer(json!({"liqo.io/remote-cluster-id": "milan"})), Some("milan".to_owned()));
    assert_eq!(peer(json!({"liqo.io/remote-cluster-id": "../etc"})), None);
    assert_eq!(peer(json!({})), None);
    assert_eq!(ServiceFacts::read(&meta(json!({}))), Some(ServiceFacts));
    assert_eq!(ServiceFacts::read(&meta(json!({"virtualkubelet.liqo.io/origin": "milan"}))), None);
}
