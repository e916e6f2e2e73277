//! Whatever is seen in whatever order, and wherever a process dies: the same end.

use proptest::prelude::*;

use super::*;

/// What may happen.
#[derive(Clone, Debug)]
enum Event {
    /// A cluster is seen: which ID, at which place, with which certificate, by which source.
    Seen(u8, u8, u8, u8),
    /// It is not seen any more.
    Lost(u8),
    /// It says goodbye.
    Goodbye(u8),
    /// Time passes, in seconds.
    Time(i64),
    /// A peering begins or ends.
    Peering(u8, bool),
    /// Only so many of the planned steps are made before the process dies.
    Crash(usize),
    /// Somebody makes an object by hand.
    ByHand(u8),
    /// Who holds an ID was asked.
    Asked(u8, bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0u8..3, 0u8..3, 0u8..3, 0u8..3).prop_map(|(id, place, certificate, source)| {
            Event::Seen(id, place, certificate, source)
        }),
        2 => (0u8..3).prop_map(Event::Lost),
        1 => (0u8..3).prop_map(Event::Goodbye),
        4 => (1i64..100).prop_map(Event::Time),
        1 => (0u8..3, any::<bool>()).prop_map(|(id, active)| Event::Peering(id, active)),
        2 => (0usize..3).prop_map(Event::Crash),
        1 => (0u8..3).prop_map(Event::ByHand),
        2 => (0u8..3, any::<bool>()).prop_map(|(id, alive)| Event::Asked(id, alive)),
    ]
}

fn id(number: u8) -> String {
    format!("cluster-{number}")
}

fn seen(cluster: u8, place: u8, certificate: u8, source: u8) -> Claim {
    let claim = claim(&id(cluster), &format!("https://10.0.0.{}:1", place + 1), &certificate.to_string());
    match source {
        0 => claim,
        number => by_dns(&format!("domain-{number}"), claim),
    }
}

impl Model {
    fn happen(&mut self, event: &Event) {
        let of = |claim: &Claim, number: u8| claim.answer.identity.id.as_str() == id(number);
        match event {
            Event::Seen(cluster, place, certificate, source) => {
                let mut claim = seen(*cluster, *place, *certificate, *source);
                claim.seen = Timestamp::from_second(self.now).unwrap();
                claim.order = self.versions;
                let same = |other: &Claim| {
                    (&other.source, &other.answer.url) == (&claim.source, &claim.answer.url)
                        && of(other, *cluster)
                };
                self.claims.retain(|other| !same(other));
                self.claims.push(claim);
            }
            Event::Lost(number) => self.claims.retain(|claim| !of(claim, *number)),
            Event::Goodbye(number) => {
                for claim in self.claims.iter_mut().filter(|claim| of(claim, *number)) {
                    claim.withdrawn = Some(Duration::from_secs(10));
                }
            }
            Event::Time(seconds) => self.now += seconds,
            Event::Peering(number, active) => {
                for name in self.named(*number) {
                    let status = if *active { "Established" } else { "None" };
                    let conditions = json!([{ "type": "IncomingPeering", "status": status }]);
                    self.change(&name, &json!({ "status": { "peeringConditions": conditions } }));
                }
            }
            Event::Crash(steps) => {
                let planned = self.plan().0;
                planned.iter().take(*steps).for_each(|step| drop(self.make(step)));
                // Memory is gone; what was seen will be seen again, in another order.
                self.incumbents.clear();
                self.made.clear();
                self.claims.reverse();
            }
            Event::ByHand(number) => {
                // Nobody makes by hand what is there already.
                if self.named(*number).is_empty() {
                    let spec = json!({
                        "clusterIdentity": { "clusterID": id(*number) },
                        "foreignAuthUrl": "https://by.hand",
                    });
                    let object = json!({ "metadata": { "name": "by-hand" }, "spec": spec });
                    if !self.objects.contains_key("by-hand") {
                        self.put("by-hand", object);
                    }
                }
            }
            Event::Asked(number, alive) => {
                for name in self.named(*number) {
                    let deaths = if *alive { 0 } else { 2 };
                    self.asked(&name, alive.then_some("0"), deaths);
                }
            }
        }
    }

    /// The objects for a cluster.
    fn named(&self, number: u8) -> Vec<String> {
        let of = |object: &Value| object["spec"]["clusterIdentity"]["clusterID"] == id(number).as_str();
        self.objects.iter().filter(|(_, object)| of(object)).map(|(name, _)| name.clone()).collect()
    }

    /// Runs until nothing is left to do; what asks for an answer gets none.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..10 {
            let made = self.run();
            if made.iter().all(|step| step.starts_with("ask")) {
                return Ok(());
            }
        }
        Err(TestCaseError::fail(format!("it never ends: {:?}", self.plan().0)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn there_is_at_most_one_object_per_cluster_and_the_plan_comes_to_an_end(
        events in proptest::collection::vec(event(), 1..60),
    ) {
        let mut model = Model::new();
        for event in &events {
            let by_hand = model.objects.get("by-hand").cloned();
            model.happen(event);
            let by_hand = by_hand.or_else(|| model.objects.get("by-hand").cloned());
            model.settle()?;
            for number in 0..3 {
                let named = model.named(number);
                prop_assert!(named.len() <= 1, "after {event:?}: {named:?}");
            }
            let after = model.objects.get("by-hand");
            let spec = |object: Option<&Value>| object.map(|object| object["spec"].clone());
            prop_assert_eq!(spec(after), spec(by_hand.as_ref()), "what people made was touched");
        }
    }

    #[test]
    fn a_restart_with_empty_memory_writes_nothing_and_leads_to_the_same(
        events in proptest::collection::vec(event(), 1..40),
    ) {
        let mut model = Model::new();
        for event in &events {
            model.happen(event);
            model.settle()?;
        }
        let before = model.objects.clone();
        // Everything is forgotten, and for a moment nothing is known.
        let claims = std::mem::take(&mut model.claims);
        model.incumbents.clear();
        (model.lan, model.wan) = (Active::Warming, Active::Warming);
        prop_assert_eq!(model.run(), Vec::<String>::new());
        // Then the same is seen again, in any order and one by one.
        for claim in claims.into_iter().rev() {
            model.claims.push(claim);
            let writes: Vec<_> = model.run().into_iter().filter(|step| !step.starts_with("ask")).collect();
            prop_assert_eq!(writes, Vec::<String>::new());
        }
        prop_assert_eq!(&model.objects, &before);
    }

    #[test]
    fn the_order_of_sightings_does_not_matter_where_nobody_lies(
        order in Just(vec![0u8, 1, 2]).prop_shuffle(), crash in 0usize..4,
    ) {
        let mut model = Model::new();
        for number in order {
            model.happen(&Event::Seen(number, number, number, 0));
            model.happen(&Event::Crash(crash));
        }
        model.settle()?;
        let names: Vec<_> = model.objects.keys().cloned().collect();
        let mut straight = Model::new();
        straight.see((0..3).map(|number| seen(number, number, number, 0)));
        straight.settle()?;
        let expected: Vec<_> = straight.objects.keys().cloned().collect();
        prop_assert_eq!(names, expected);
    }
}
