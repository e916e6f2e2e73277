use super::*;

/// What may happen.
#[derive(Clone, Debug)]
enum Event {
    Reach(bool),
    Forget,
    Lend(bool),
    End(bool),
    Amount(u8),
    Label(u8),
    Pass(u8),
    Cordon(bool),
    UserLabel(u8),
    UserTaint(bool),
    Drain(bool),
    Left(bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        any::<bool>().prop_map(Event::Reach),
        Just(Event::Forget),
        any::<bool>().prop_map(Event::Lend),
        any::<bool>().prop_map(Event::End),
        (0u8..4).prop_map(Event::Amount),
        (0u8..4).prop_map(Event::Label),
        (0u8..40).prop_map(Event::Pass),
        any::<bool>().prop_map(Event::Cordon),
        (0u8..4).prop_map(Event::UserLabel),
        any::<bool>().prop_map(Event::UserTaint),
        any::<bool>().prop_map(Event::Drain),
        any::<bool>().prop_map(Event::Left),
    ]
}

const NODE: &str = "liqo-milan";

fn happen(world: &mut World, event: &Event) {
    let exists = world.nodes.contains_key(NODE);
    match event {
        Event::Reach(true) => world.change(ID, |it| it.health = Health::Reachable),
        Event::Reach(false) => world.lose(),
        Event::Forget => world.change(ID, |it| it.health = Health::Unknown),
        Event::Lend(true) => {
            let lent = {
                let _inside = world.runtime.enter();
                provider(ID, "milan").lent
            };
            world.change(ID, |it| it.lent = it.lent.take().or(lent));
        }
        Event::Lend(false) => world.change(ID, |it| it.lent = None),
        _ if world.providers.get(ID).unwrap().lent.is_none()
            && matches!(event, Event::End(_) | Event::Amount(_) | Event::Label(_)) => {}
        Event::End(ending) => world.lend(|lent| lent.ending = *ending),
        Event::Amount(cpu) => {
            world.lend(|lent| lent.resources = resources(&[("cpu", &cpu.to_string()), ("memory", "1Gi")]));
        }
        Event::Label(value) => {
            world.lend(|lent| lent.labels = BTreeMap::from([("tier".into(), value.to_string())]));
        }
        Event::Pass(seconds) => world.pass((*seconds).into()),
        Event::Cordon(on) if exists => world.edit(NODE, &json!({ "spec": { "unschedulable": on } })),
        Event::UserLabel(value) if exists => {
            world.edit(NODE, &json!({ "metadata": { "labels": { "own": value.to_string() } } }));
        }
        Event::UserTaint(on) if exists => {
            let mut taints = world.milan()["spec"]["taints"].as_array().unwrap().clone();
            taints.retain(|it| it["key"] != "own");
            if *on {
                taints.push(json!({ "key": "own", "effect": "NoSchedule" }));
            }
            world.edit(NODE, &json!({ "spec": { "taints": taints } }));
        }
        Event::Drain(on) if exists => {
            let value = if *on { json!("yes") } else { Value::Null };
            world.edit(
                NODE,
                &json!({ "metadata": { "annotations": { "virtual-node.liqo.io/drain": value } } }),
            );
        }
        Event::Left(any) => {
            let since = world
                .index
                .node_of(&Place::whole(ID.parse().unwrap()))
                .and_then(|(_, facts)| draining_since(facts));
            if let Some(since) = since {
                world.index.emptied.insert(NODE.into(), Emptied { since, left: usize::from(*any) });
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_it_settles_and_says_what_is_so(events in prop::collection::vec(event(), 1..30)) {
        let mut world = World::settled();
        for event in &events {
            let (own_label, own_taint) = match world.nodes.get(NODE) {
                Some(node) => (node["metadata"]["labels"]["own"].clone(), node["spec"]["taints"].clone()),
                None => (Value::Null, Value::Null),
            };
            let had_taint = own_taint.as_array().is_some_and(|all| all.iter().any(|it| it["key"] == "own"));
            let uid = world.nodes.get(NODE).map(|node| node["metadata"]["uid"].clone());
            happen(&mut world, event);
            world.settle();
            prop_assert_eq!(world.settle(), 0, "it was settled");
            let Some(node) = world.nodes.get(NODE) else { continue };
            // What others added is still there, unless it was changed by them or the node is another.
            if uid == Some(node["metadata"]["uid"].clone()) {
                if !matches!(event, Event::UserLabel(_)) {
                    prop_assert_eq!(&node["metadata"]["labels"]["own"], &own_label);
                }
                let taints = node["spec"]["taints"].as_array().unwrap();
                if !matches!(event, Event::UserTaint(_)) {
                    prop_assert_eq!(taints.iter().any(|it| it["key"] == "own"), had_taint);
                }
            }
            let provider = world.providers.get(ID).unwrap();
            let unreachable = world.taints().iter().any(|it| it.contains("unreachable"));
            match (&provider.health, &provider.lent) {
                (Health::Reachable, _) => prop_assert!(!unreachable),
                (Health::Unreachable { .. }, _) => prop_assert!(unreachable),
                (Health::Unknown, _) => {}
            }
            let ready = world.condition("Ready");
            if ready["status"] == "True" {
                prop_assert!(provider.lent.is_some());
                prop_assert!(!provider.health.is_gone());
            }
        }
    }
}
