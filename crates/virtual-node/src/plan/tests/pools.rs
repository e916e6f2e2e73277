use super::*;

const GPU: &str = "liqo-milan-gpu";
const PLAIN: &str = "liqo-milan-plain";

fn pool(amounts: &[(&str, &str)], labels: &[(&str, &str)]) -> Pool {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Pool { resources: resources(amounts), labels }
}

impl World {
    /// A provider with two pools, each with its node.
    fn pooled() -> Self {
        let mut world = Self::new();
        world.add(ID, "milan");
        world.lend(|lent| {
            lent.labels = BTreeMap::from([("tier".into(), "any".into()), ("zone".into(), "north".into())]);
            let labels = [("tier", "fast"), ("liqo.io/pool", "lie"), ("node-role.kubernetes.io/x", "")];
            lent.pools = BTreeMap::from([
                ("gpu".parse().unwrap(), pool(&[("cpu", "1"), ("memory", "2Gi"), ("pods", "10")], &labels)),
                ("plain".parse().unwrap(), pool(&[("cpu", "3"), ("memory", "6Gi"), ("pods", "100")], &[])),
            ]);
        });
        world.settle();
        world
    }

    fn names(&self) -> Vec<&str> {
        self.nodes.keys().map(String::as_str).collect()
    }

    fn empty(&mut self, name: &str) {
        let since = &self.node(name)["metadata"]["annotations"]["virtual-node.liqo.io/draining-since"];
        let since = since.as_str().unwrap_or_else(|| panic!("{name} is not emptied")).parse().unwrap();
        self.index.emptied.insert(name.into(), Emptied { since, left: 0 });
    }

    fn ready(&self, name: &str) -> (Value, Value) {
        let conditions = self.node(name)["status"]["conditions"].as_array().unwrap();
        let ready = conditions.iter().find(|it| it["type"] == "Ready").unwrap();
        (ready["status"].clone(), ready["reason"].clone())
    }
}

#[test]
fn each_pool_has_a_node_with_what_is_lent_of_it() {
    let mut world = World::pooled();
    assert_eq!(world.names(), [GPU, PLAIN]);
    let node = world.node(GPU);
    assert_eq!(node["spec"]["providerID"], format!("liqo://{ID}/gpu"));
    assert_eq!(node["status"]["capacity"], json!({ "cpu": "1", "memory": "2Gi", "pods": "10" }));
    let labels = &node["metadata"]["labels"];
    for (key, value) in [
        ("liqo.io/pool", json!("gpu")),
        ("liqo.io/remote-cluster-id", json!(ID)),
        ("kubernetes.io/hostname", json!(GPU)),
        ("tier", json!("fast")),
        ("zone", json!("north")),
        ("node-role.kubernetes.io/x", Value::Null),
    ] {
        assert_eq!(labels[key], value, "{key}");
    }
    assert_eq!(world.node(PLAIN)["metadata"]["labels"]["tier"], "any");
    assert_eq!(world.settle(), 0);
    world.lose();
    world.settle();
    for name in [GPU, PLAIN] {
        assert_eq!(world.ready(name).1, "ProviderUnreachable");
    }
}

#[test]
fn a_pool_that_goes_is_emptied_and_the_others_stay() {
    let mut world = World::pooled();
    let gone = world.providers.get(ID).unwrap().lent.as_ref().unwrap().pools["gpu"].clone();
    world.lend(|lent| drop(lent.pools.remove("gpu")));
    world.settle();
    assert_eq!(world.ready(GPU), (json!("False"), json!("PoolOver")));
    world.pass(4);
    assert_eq!(world.settle(), 0, "it may come back");
    world.lend(|lent| drop(lent.pools.insert("gpu".parse().unwrap(), gone)));
    world.settle();
    assert_eq!(world.ready(GPU).0, "True");

    world.lend(|lent| drop(lent.pools.remove("gpu")));
    world.settle();
    world.pass(5);
    world.settle();
    assert_eq!(world.node(GPU)["spec"]["unschedulable"], true);
    assert_eq!(world.node(PLAIN)["spec"]["unschedulable"], Value::Null);
    world.empty(GPU);
    world.settle();
    assert_eq!(world.names(), [PLAIN]);
}

#[test]
fn a_contract_that_begins_or_ceases_to_have_pools_changes_nodes() {
    let mut world = World::pooled();
    let pools = world.providers.get(ID).unwrap().lent.as_ref().unwrap().pools.clone();
    world.lend(|lent| lent.pools.clear());
    world.settle();
    assert_eq!(world.names(), ["liqo-milan", GPU, PLAIN], "the new node is there before the old ones go");
    world.pass(5);
    world.settle();
    [GPU, PLAIN].iter().for_each(|name| world.empty(name));
    world.settle();
    assert_eq!(world.names(), ["liqo-milan"]);

    world.lend(|lent| lent.pools = pools);
    world.settle();
    world.pass(5);
    world.settle();
    assert_eq!(world.ready("liqo-milan").1, "PoolOver");
    world.empty("liqo-milan");
    world.settle();
    assert_eq!(world.names(), [GPU, PLAIN]);
    world.lend(|lent| lent.ending = true);
    world.settle();
    [GPU, PLAIN].iter().for_each(|name| world.empty(name));
    world.settle();
    assert_eq!(world.names(), Vec::<&str>::new());
}

#[test]
fn a_pool_without_a_place_for_pods_takes_none() {
    let mut world = World::pooled();
    world.lend(|lent| {
        drop(lent.pools.insert("gpu".parse().unwrap(), pool(&[("cpu", "1"), ("memory", "1Gi")], &[])));
    });
    world.settle();
    assert_eq!(world.node(GPU)["status"]["capacity"]["pods"], "0", "the contract limits pods");
}

#[test]
fn a_cluster_that_is_called_like_a_pool_of_another_gets_a_name_of_its_own() {
    let mut world = World::pooled();
    world.add(OTHER_ID, "milan-gpu");
    world.settle();
    assert_eq!(world.nodes.len(), 3, "{:?}", world.names());
    assert_eq!(world.node(GPU)["spec"]["providerID"], format!("liqo://{ID}/gpu"));
}
